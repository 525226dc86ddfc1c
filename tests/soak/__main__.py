"""`python -m tests.soak [--minutes 30] [--seed N]`: the sidecar under everything at once, for long.

A producer and a consumer that must lose nothing, an application that creates topics and reads them at once, visitors
that behave badly, reloads, and brokers that are shut down, killed and stopped in turn, all on real Kafka. Afterwards
everybody leaves, and the sidecar must hold no more than before: memory, sockets, ports. Exits 1 and says what is wrong
if not.
"""

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any, Final

from tests.soak.applications import Application, SteadyClient
from tests.soak.churn import Churn
from tests.soak.samples import GROWTH_MAX, Sample, Sampler, growth, look, table
from tests.support import raw_topics
from tests.support.kafka import KafkaCluster
from tests.support.sidecar import SidecarProcess
from tests.support.sidecar_admin import SidecarAdmin

TOPIC: Final = "soak"
SAMPLE_INTERVAL_S: Final = 5.0
RELOAD_INTERVAL_S: Final = 10.0
BOUNCE_INTERVAL_S: Final = 30.0
OWN_CONNECTIONS_MAX: Final = 10
"""Discovery, and for each of three brokers a probe, a head question and a channel for routed reads."""
QUIET_S: Final = 90.0
"""How long the sidecar gets to let go of what its clients left."""


def bounce(kafka: KafkaCluster, round_number: int) -> None:
    """Take one broker away and give it back: shut down, killed or standing still, in turn."""
    broker_id = sorted(kafka.brokers)[round_number % len(kafka.brokers)]
    match round_number % 3:
        case 0:
            kafka.shut_down(broker_id)
        case 1:
            kafka.kill(broker_id)
        case _:
            kafka.stop(broker_id)
            time.sleep(5)
    kafka.heal()


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with KafkaCluster() as kafka, SidecarProcess(kafka.bootstrap) as sidecar:
        faults = soak(kafka, sidecar, options.minutes * 60, options.seed)
    say("\n".join(faults) or "clean")
    return 1 if faults else 0


def soak(kafka: KafkaCluster, sidecar: SidecarProcess, seconds: float, seed: int) -> list[str]:
    """Everything at once for so long, and then silence; returns what is wrong."""
    admin = SidecarAdmin(sidecar.admin)
    raw_topics.create(kafka.brokers[1], TOPIC, sorted(kafka.brokers))
    kafka.wait_caught_up()
    before = look(sidecar.pid, admin)
    sampler = Sampler(sidecar.pid, admin, SAMPLE_INTERVAL_S)
    churn = Churn([sidecar.bootstrap, *sidecar.nodes.values()], seed)
    application = Application(str(sidecar.bootstrap), TOPIC)
    with SteadyClient(str(sidecar.bootstrap), TOPIC) as steady:
        reloads = bounces = 0
        start_s = time.monotonic()
        while (passed_s := time.monotonic() - start_s) < seconds:
            time.sleep(1)
            if passed_s > (reloads + 1) * RELOAD_INTERVAL_S:
                os.kill(sidecar.pid, signal.SIGHUP)
                reloads += 1
            # The last stretch is for everybody to catch up.
            if (bounces + 1) * BOUNCE_INTERVAL_S < passed_s < seconds - BOUNCE_INTERVAL_S:
                bounce(kafka, bounces)
                bounces += 1
        application.stop()
        result = steady.result()
    churn.stop()
    sampler.stop()
    after = settled(sidecar, admin, before)
    say(table(sampler.samples))
    say(f"before {before}\nafter  {after}")
    say(f"visits {churn.visits}, reloads {reloads}, bounces {bounces}")
    say(f"reads {application.reads}, stale {application.stale}, errors {len(application.errors)}; records {result}")
    sidecar.terminate()
    return [
        *_leaks(before, after, sampler.samples),
        *(f"{count} {what}" for what, count in _losses(result, application).items() if count),
        *([] if sidecar.wait() == 0 else ["the sidecar did not end well"]),
        *(line for line in sidecar.log if "ERROR" in line or "Traceback" in line),
    ]


def settled(sidecar: SidecarProcess, admin: SidecarAdmin, before: Sample) -> Sample:
    """What the sidecar holds once all clients have left, or after `QUIET_S`."""
    deadline_s = time.monotonic() + QUIET_S
    while True:
        now = look(sidecar.pid, admin)
        if (now.client_connections == 0 and not any(_left_over(before, now))) or time.monotonic() > deadline_s:
            return now
        time.sleep(1)


def _leaks(before: Sample, after: Sample, samples: list[Sample]) -> Iterator[str]:
    grown = growth([sample.rss_bytes for sample in samples])
    if grown > GROWTH_MAX:
        yield f"memory grew by {grown:.0%} from the second quarter to the last"
    if after.client_connections:
        yield f"{after.client_connections} client connections are left"
    yield from _left_over(before, after)
    if after.listening != before.listening:
        yield f"listens on {sorted(after.listening)}, before on {sorted(before.listening)}"
    if after.held_requests:
        yield f"{after.held_requests} requests are held"


def _left_over(before: Sample, after: Sample) -> Iterator[str]:
    """Sockets and files beyond the sidecar's own connections, of which it keeps a few to each broker."""
    if after.broker_connections > OWN_CONNECTIONS_MAX:
        yield f"{after.broker_connections} connections to brokers are open, at most {OWN_CONNECTIONS_MAX} are its own"
    others_before, others = (s.descriptors - s.broker_connections - s.client_connections for s in (before, after))
    if others > others_before:
        yield f"{others} descriptors are open besides those of connections, {others_before} before"


def _losses(result: dict[str, Any], application: Application) -> dict[str, int]:
    return {
        "stale reads": application.stale,
        "records lost": result["lost"],
        "records out of order": result["out_of_order"],
        "runs without a single read": int(application.reads == 0),
    }


def say(text: str) -> None:
    """To standard output, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
