"""Logins of clients pass: raw tokens without headers, the requests of today, and these again on a live connection."""

import asyncio
import struct
from typing import Final

import pytest
from kio.schema.api_versions.v3 import ApiVersionsResponse
from kio.schema.metadata.v12 import MetadataRequest, MetadataResponse
from kio.schema.sasl_authenticate.v2 import SaslAuthenticateRequest, SaslAuthenticateResponse
from kio.schema.sasl_handshake.v0 import SaslHandshakeRequest as RawHandshakeRequest
from kio.schema.sasl_handshake.v0 import SaslHandshakeResponse as RawHandshakeResponse
from kio.schema.sasl_handshake.v1 import SaslHandshakeRequest, SaslHandshakeResponse

from codec.api_keys import ApiKey
from sidecar.core.raw_tokens import is_request
from tests.support.fake_broker import FakeCluster
from tests.support.fake_login import FakeSasl
from tests.support.raw_client import API_VERSIONS, PlainLogin, RawClientError, RawConnection, encode_request
from tests.support.sidecar_app import ServingSidecar, serving

ALL_TOPICS = MetadataRequest(topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=False)
PLAIN_TOKEN: Final = b"\0alice\0alice-secret"
SCRAM_TOKENS: Final = (b"n,,n=alice,r=4f2a", b"c=biws,r=4f2a91,p=dHM=")
GSSAPI_TOKENS: Final = (bytes.fromhex("6082027006092a864886f712"), bytes.fromhex("050404ff000c000000000000"))
PATIENCE_S: Final = 20.0


def cluster_with(*raw_answers: bytes | None) -> FakeCluster:
    cluster = FakeCluster(1)
    cluster.sasl = FakeSasl(passwords={"tidegate": "its-own", "alice": "alice-secret"}, raw_answers=raw_answers)
    return cluster


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


@pytest.fixture
def security(tmp_path: pytest.TempPathFactory) -> dict[str, object]:
    """The sidecar's own identity."""
    password = tmp_path / "password"  # type: ignore[operator]
    password.write_text("its-own")
    sasl = {"mechanism": "PLAIN", "username": "tidegate", "password_file": str(password)}
    return {"security": {"protocol": "SASL_PLAINTEXT", "sasl": sasl}}


@pytest.mark.row("5.2")
@pytest.mark.parametrize(
    ("tokens", "answers"),
    [
        ((PLAIN_TOKEN,), (b"",)),
        ((b"\0a\0b",), (b"",)),
        (SCRAM_TOKENS, (b"r=4f2a91,s=QQ==,i=4096", b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=")),
        (GSSAPI_TOKENS, (bytes.fromhex("0504"), None)),
        ((b"", b"x" * 100_000), (b"y" * 100_000, b"\0" * 3)),
    ],
    ids=["plain", "short", "scram", "gssapi", "odd"],
)
async def test_raw_tokens_pass_until_the_first_request(
    security: dict[str, object], tokens: tuple[bytes, ...], answers: tuple[bytes | None, ...]
) -> None:
    async with (
        cluster_with(*answers) as cluster,
        serving(str(cluster.brokers[1].address), cluster=security) as sidecar,
        await RawConnection.open(sidecar.nodes[1]) as client,
    ):
        shook = await client.ask(RawHandshakeRequest(mechanism="PLAIN"), RawHandshakeResponse)
        assert shook.error_code.value == 0
        for token, answer in zip(tokens, answers, strict=True):
            await client.send_bytes(framed(token))
            if answer is not None:
                assert await client.receive_frame() == answer
        described = await client.ask(ALL_TOPICS, MetadataResponse)
        assert [(b.host, b.port) for b in described.brokers] == [sidecar.nodes[1]]


@pytest.mark.row("5.2")
@pytest.mark.parametrize("step", [1, 3, 1000])
async def test_raw_tokens_pass_in_any_pieces_and_all_at_once(security: dict[str, object], step: int) -> None:
    async with (
        cluster_with(b"first", b"") as cluster,
        serving(str(cluster.brokers[1].address), cluster=security) as sidecar,
        await RawConnection.open(sidecar.nodes[1]) as client,
    ):
        conversation = encode_request(RawHandshakeRequest(mechanism="PLAIN"), 1)
        conversation += framed(b"\0a\0b") + framed(PLAIN_TOKEN)
        conversation += encode_request(API_VERSIONS, 2) + encode_request(ALL_TOPICS, 3)
        for start in range(0, len(conversation), step):
            await client.send_bytes(conversation[start : start + step])
            await asyncio.sleep(0)
        frames = [await client.receive_frame() for _ in range(5)]
        assert frames[1:3] == [b"first", b""]
        assert [struct.unpack_from(">i", found)[0] for found in (frames[0], *frames[3:])] == [1, 2, 3]


@pytest.mark.row("5.2")
async def test_a_login_of_today(security: dict[str, object]) -> None:
    async with cluster_with() as cluster, serving(str(cluster.brokers[1].address), cluster=security) as sidecar:
        async with await RawConnection.open(sidecar.nodes[1], login=PlainLogin.of("alice")) as client:
            assert await client.ask(ALL_TOPICS, MetadataResponse)
        with pytest.raises(RawClientError, match="login as bob refused: Authentication failed"):
            await RawConnection.open(sidecar.nodes[1], login=PlainLogin.of("bob"))
        assert {ask.principal for ask in cluster.brokers[1].asked if ask.client_id == "raw-client"} == {None, "alice"}


async def hold_a_read(sidecar: ServingSidecar, cluster: FakeCluster, client: RawConnection) -> int:
    """Leaves a Metadata request unsent; returns the offset that the broker must reach."""
    await client.ask(ALL_TOPICS, MetadataResponse)
    (session,) = sidecar.app.driver.core.sessions
    offset = cluster.commit(seen_by=())
    async with asyncio.timeout(PATIENCE_S):
        while session.bound.brokers:  # noqa: ASYNC110 - a probe of the sidecar's own redeems it
            await asyncio.sleep(0.001)
        session.bound.visible = offset
        await client.send(ALL_TOPICS)
        while not sidecar.app.driver.core.gate.held:  # noqa: ASYNC110 - it happens in this very loop
            await asyncio.sleep(0)
    return offset


@pytest.mark.row("5.3")
async def test_a_login_on_a_live_connection_does_not_overtake_a_held_read(security: dict[str, object]) -> None:
    async with (
        cluster_with() as cluster,
        serving(str(cluster.brokers[1].address), cluster=security) as sidecar,
        await RawConnection.open(sidecar.nodes[1], login=PlainLogin.of("alice")) as client,
    ):
        broker = cluster.brokers[1]
        for _ in range(2):
            offset = await hold_a_read(sidecar, cluster, client)
            await client.send(SaslHandshakeRequest(mechanism="PLAIN"))
            await client.send(SaslAuthenticateRequest(auth_bytes=PLAIN_TOKEN))
            await client.send(API_VERSIONS)
            before = len(broker.asked)
            broker.position = offset
            assert (await client.receive(MetadataResponse)).brokers
            assert (await client.receive(SaslHandshakeResponse)).error_code.value == 0
            assert (await client.receive(SaslAuthenticateResponse)).error_code.value == 0
            assert (await client.receive(ApiVersionsResponse)).error_code.value == 0
            came = [ask.api_key for ask in broker.asked[before:] if ask.client_id == "raw-client"]
            assert came == [ApiKey.METADATA, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.API_VERSIONS]


def test_tokens_and_requests_are_told_apart() -> None:
    bearer = b"n,a=alice,\x01auth=Bearer eyJhbGciOiJub25lIn0\x01\x01"
    for token in (b"", b"\0a\0b", PLAIN_TOKEN, *SCRAM_TOKENS, *GSSAPI_TOKENS, bearer, b"\x01" * 9):
        assert not is_request(token)
    for request in (API_VERSIONS, ALL_TOPICS, SaslHandshakeRequest(mechanism="PLAIN")):
        for client_id in (None, "", "client"):
            assert is_request(encode_request(request, 7, client_id)[4:])
