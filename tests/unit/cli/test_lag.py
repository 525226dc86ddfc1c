"""`tidegate lag` as a user runs it, against a fake cluster."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from codec.api_keys import ApiKey
from codec.error_codes import ErrorCode
from tests.support.fake_broker import Ask, FakeCluster
from tidegate.cli.group import tidegate

SCRIPT = Path(sys.executable).with_name("tidegate")
SECRET = "a secret nobody should see"


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    async with FakeCluster(2) as cluster:
        yield cluster


async def lag(*arguments: str | Path) -> Result:
    """Runs the command beside the event loop, which serves the fake cluster."""
    words = ["lag", *map(str, arguments)]
    return await asyncio.to_thread(CliRunner().invoke, tidegate, words, prog_name="tidegate")


def bootstrap(cluster: FakeCluster) -> str:
    return ",".join(str(broker.address) for broker in cluster.brokers.values())


async def test_the_table(cluster: FakeCluster) -> None:
    cluster.commit(seen_by=(1,))
    first, second = (str(broker.address) for broker in cluster.brokers.values())
    result = await lag("--bootstrap", bootstrap(cluster))
    assert (result.exit_code, result.stderr) == (0, "")
    assert [line.split() for line in result.stdout.splitlines()] == [
        ["head", "101", "at", "leader", "epoch", "1"],
        ["broker", "address", "visible", "lag"],
        ["1", first, "101", "0"],
        ["2", second, "100", "1"],
    ]


async def test_the_table_says_why_something_is_unknown(cluster: FakeCluster) -> None:
    cluster.refuses_quorum = True
    await cluster.brokers[2].stop()
    result = await lag("--bootstrap", bootstrap(cluster))
    title, _, first, second = result.stdout.splitlines()
    assert title.startswith("head unknown: DescribeQuorum was refused with CLUSTER_AUTHORIZATION_FAILED")
    assert first.split()[-2:] == ["100", "-"]
    assert second.endswith("-    -  cannot connect: Connection refused")
    assert (result.exit_code, result.stderr) == (0, "")


async def test_json_is_exactly_this(cluster: FakeCluster) -> None:
    cluster.commit(seen_by=(1,))
    result = await lag("--bootstrap", bootstrap(cluster), "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == (
        '{"head": {"offset": 101, "leader_epoch": 1}, "brokers": ['
        '{"node_id": 1, "offset": 101, "lag_records": 0}, {"node_id": 2, "offset": 100, "lag_records": 1}]}\n'
    )


async def test_json_gives_a_reason_beside_every_null(cluster: FakeCluster) -> None:
    cluster.refuses_quorum = True
    await cluster.brokers[2].stop()
    result = await lag("--bootstrap", bootstrap(cluster), "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert "CLUSTER_AUTHORIZATION_FAILED" in found.pop("reason")
    assert found == {
        "head": None,
        "brokers": [
            {"node_id": 1, "offset": 100, "lag_records": None},
            {"node_id": 2, "offset": None, "lag_records": None, "reason": "cannot connect: Connection refused"},
        ],
    }


async def test_a_cluster_out_of_reach_ends_with_3(cluster: FakeCluster) -> None:
    for broker in cluster.brokers.values():
        await broker.stop()
    servers = bootstrap(cluster)
    result = await lag("--bootstrap", servers)
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.splitlines() == [
        f"tidegate lag: {server}: cannot connect: Connection refused" for server in servers.split(",")
    ]
    result = await lag("--bootstrap", servers, "--json")
    assert result.exit_code == 3
    assert json.loads(result.stdout) == {"head": None, "reason": "no broker answers", "brokers": []}


async def test_brokers_out_of_reach_end_with_3(cluster: FakeCluster) -> None:
    names = [{"node_id": 7, "host": "nobody.invalid", "port": 9092}]
    for broker in cluster.brokers.values():
        broker.handlers[ApiKey.METADATA] = lambda ask: {**cluster.metadata(), "brokers": names}
    result = await lag("--bootstrap", bootstrap(cluster), "--json")
    assert result.exit_code == 3
    assert json.loads(result.stdout)["brokers"][0]["node_id"] == 7
    assert result.stderr == "tidegate lag: no broker answers at the address that the cluster names for it\n"


async def test_host_names_cannot_steer_the_terminal(cluster: FakeCluster) -> None:
    names = [{"node_id": 7, "host": "\x1b[2J", "port": 9092}]
    for broker in cluster.brokers.values():
        broker.handlers[ApiKey.METADATA] = lambda ask: {**cluster.metadata(), "brokers": names}
    result = await lag("--bootstrap", bootstrap(cluster))
    assert "\x1b" not in result.stdout
    assert "\\x1b[2J:9092" in result.stdout


async def test_a_wrong_password_is_told_without_it(cluster: FakeCluster, tmp_path: Path) -> None:
    def refuse(ask: Ask) -> dict[str, object]:
        assert ask.body == {"auth_bytes": b"\0alice\0" + SECRET.encode()}
        return {
            "error_code": ErrorCode.SASL_AUTHENTICATION_FAILED,
            "error_message": "Invalid username or password",
            "auth_bytes": b"",
        }

    for broker in cluster.brokers.values():
        broker.handlers[ApiKey.SASL_HANDSHAKE] = lambda ask: {"error_code": 0, "mechanisms": ["PLAIN"]}
        broker.handlers[ApiKey.SASL_AUTHENTICATE] = refuse
    result = await lag("--bootstrap", str(cluster.brokers[1].address), "--command-config", login_file(tmp_path))
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr == (
        f"tidegate lag: {cluster.brokers[1].address}: "
        "SASL PLAIN login as 'alice' failed: Invalid username or password\n"
    )


def login_file(folder: Path) -> Path:
    (folder / "password").write_text(SECRET)
    file = folder / "command.yaml"
    sasl = f"mechanism: PLAIN, username: alice, password_file: {folder}/password"
    file.write_text(f"protocol: SASL_PLAINTEXT\nsasl: {{{sasl}}}\n")
    return file


async def test_faults_of_the_command_config_end_with_2(tmp_path: Path) -> None:
    file = tmp_path / "command.yaml"
    file.write_text("protocol: SASL_PLAINTEXT\nsasl: {username: alice}\n")
    result = await lag("--bootstrap", "127.0.0.1:9092", "--command-config", file)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"{file}:2: sasl.mechanism: required with protocol SASL_PLAINTEXT\n"


async def test_a_password_file_that_is_not_there_ends_with_2(tmp_path: Path) -> None:
    file = login_file(tmp_path)
    (tmp_path / "password").unlink()
    result = await lag("--bootstrap", "127.0.0.1:9092", "--command-config", file)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"{tmp_path}/password: cannot be read: No such file or directory\n"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "Missing option '--bootstrap'"),
        (("--bootstrap", "kafka"), "must be HOST:PORT, or several of them with commas"),
        (("--bootstrap", "a:1,,b:2"), "must be HOST:PORT"),
        (("--bootstrap", "a:1," * 101 + "b:2"), "must have at most 100 entries"),
        (("--bootstrap", "a:1", "--watch", "--json"), "--watch does not go with --json"),
    ],
)
async def test_wrong_usage_ends_with_2(arguments: tuple[str, ...], reason: str) -> None:
    result = await lag(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert reason in result.stderr


async def test_watch_looks_again_until_it_is_interrupted(cluster: FakeCluster) -> None:
    process = await asyncio.create_subprocess_exec(
        SCRIPT,
        *("lag", "--watch", "--bootstrap", str(cluster.brokers[1].address)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        # Whoever runs the tests in the background may ignore the signal, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    assert process.stderr is not None
    async with asyncio.timeout(60):
        assert await page(process.stdout) == ["head 100 at leader epoch 1", "0", "0"]
        cluster.commit(seen_by=(1,))
        while (shown := await page(process.stdout))[0] == "head 100 at leader epoch 1":
            pass
        assert shown == ["head 101 at leader epoch 1", "0", "1"]
        for broker in cluster.brokers.values():
            await broker.stop()
        while (line := await process.stdout.readline()) != b"cluster not reachable\n":
            assert line
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 0
        assert await process.stderr.read() == b""


async def page(stdout: asyncio.StreamReader) -> list[str]:
    """The title of the next page, and the lag of each broker."""
    title, _, *rows = [(await stdout.readline()).decode().strip() for _ in range(4)]
    return [title, *(row.split()[-1] for row in rows)]


async def test_watch_gives_up_at_once_where_no_cluster_is(cluster: FakeCluster) -> None:
    for broker in cluster.brokers.values():
        await broker.stop()
    assert (await lag("--bootstrap", bootstrap(cluster), "--watch")).exit_code == 3
