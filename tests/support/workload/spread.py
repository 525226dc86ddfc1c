"""The workload several times at once: rounds that each wait for a lagging broker need not wait one after the other.

Also the settings of a sidecar that such runs share.
"""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.support.address import Address
from tests.support.raw_client import PlainLogin
from tests.support.workload.kinds import KINDS, Kind
from tests.support.workload.run import CLIENT_ID, run
from tests.support.workload.tally import Result

PATIENT: Final[dict[str, Any]] = {"consistency": {"wait_timeout_ms": 15_000, "effective_grace_ms": 15_000}}
"""A machine with too much to do is late; a run that is about staleness must not fail for that."""


def login_settings(login: PlainLogin, folder: Path) -> dict[str, Any]:
    """The section that gives a sidecar its own login; the password goes to a file in `folder`."""
    file = folder / f"{login.username}.password"
    file.write_text(login.password)
    sasl = {"mechanism": "PLAIN", "username": login.username, "password_file": str(file)}
    return {"cluster": {"security": {"protocol": "SASL_PLAINTEXT", "sasl": sasl}}}


async def run_spread(
    nodes: Mapping[int, Address],
    *,
    rounds: int,
    copies: int,
    kinds: Sequence[type[Kind]] = KINDS,
    writer: Address | None = None,
    login: PlainLogin | None = None,
    client_id: str = CLIENT_ID,
) -> Result:
    """`copies` workloads at the same time, all kinds of each in parallel; arguments and errors as of `run`.

    Args:
        rounds: of all copies together, rounded up to a multiple of `copies`.
    """
    each = -(-rounds // copies)
    work = [
        run(nodes, rounds=each, kinds=kinds, writer=writer, login=login, client_id=client_id, in_parallel=True)
        for _ in range(copies)
    ]
    return merged(await asyncio.gather(*work))


def merged(results: Sequence[Result]) -> Result:
    """One result that counts everything of these."""
    total = Result()
    for result in results:
        for key, tally in result.tallies.items():
            total.tallies[key].add(tally)
        total.writes.update(result.writes)
        total.write_errors.update(result.write_errors)
    return total
