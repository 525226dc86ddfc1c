"""Logins that clients do themselves, through the sidecar to a SASL listener of a real Kafka: old and new, and anew."""

import struct
from pathlib import Path

import pytest
from kio.schema.metadata.v12 import MetadataResponse
from kio.schema.sasl_handshake.v0 import SaslHandshakeRequest, SaslHandshakeResponse
from scramp import ScramClient

from tests.support.kafka import KafkaCluster
from tests.support.raw_client import PlainLogin, RawClientError, RawConnection
from tests.support.sidecar import SidecarProcess
from tests.support.workload.spread import login_settings
from tests.support.workload.topics import metadata_of

pytestmark = pytest.mark.kafka

ALICE = PlainLogin.of("alice")
BOB = PlainLogin.of("bob")
SCRAM = "SCRAM-SHA-256"
CONFIGS = "org.apache.kafka.tools.ConfigCommand"


async def say(client: RawConnection, token: bytes) -> bytes:
    """Sends a raw token; returns the broker's."""
    await client.send_bytes(struct.pack(">i", len(token)) + token)
    return await client.receive_frame()


async def shake_hands(client: RawConnection, mechanism: str) -> None:
    answer = await client.ask(SaslHandshakeRequest(mechanism=mechanism), SaslHandshakeResponse)
    assert answer.error_code.value == 0


async def check_served(client: RawConnection, sidecar: SidecarProcess) -> None:
    answer = await client.ask(metadata_of(None), MetadataResponse)
    assert {broker.node_id: (broker.host, broker.port) for broker in answer.brokers} == sidecar.nodes


@pytest.mark.row("5.2")
@pytest.mark.row("5.3")
async def test_raw_tokens_and_a_second_login_on_a_live_connection(kafka: KafkaCluster, tmp_path: Path) -> None:
    dora = ("--entity-type", "users", "--entity-name", "dora")
    added = kafka.tool(
        CONFIGS,
        "--bootstrap-server",
        kafka.bootstrap,
        *dora,
        "--alter",
        "--add-config",
        f"{SCRAM}=[password=c-secret]",
    )
    assert added.returncode == 0, added.stderr
    kafka.wait_caught_up(effective=True)
    with SidecarProcess(kafka.sasl_bootstrap, settings=login_settings(ALICE, tmp_path)) as sidecar:
        async with await RawConnection.open(sidecar.nodes[1]) as client:
            await shake_hands(client, "PLAIN")
            assert await say(client, b"\0bob\0bob-secret") == b""
            await check_served(client, sidecar)
        async with await RawConnection.open(sidecar.nodes[2]) as client:
            await shake_hands(client, SCRAM)
            scram = ScramClient([SCRAM], "dora", "c-secret")
            scram.set_server_first((await say(client, scram.get_client_first().encode())).decode())
            scram.set_server_final((await say(client, scram.get_client_final().encode())).decode())
            await check_served(client, sidecar)
        async with await RawConnection.open(sidecar.nodes[1]) as client:
            await shake_hands(client, "PLAIN")
            with pytest.raises(RawClientError, match="closed"):
                await say(client, b"\0bob\0wrong")
        async with await RawConnection.open(sidecar.nodes[3], login=BOB) as client:
            await check_served(client, sidecar)
            await client.log_in(BOB)
            await check_served(client, sidecar)
        async with await RawConnection.open(sidecar.nodes[3], login=BOB) as client:
            with pytest.raises(RawClientError, match="Cannot change principals"):
                await client.log_in(ALICE)
