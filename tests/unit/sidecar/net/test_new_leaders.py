"""Answers about partitions that have moved name the new leaders: each API and version that can, on loopback."""

import struct
from collections.abc import Mapping
from typing import Any, Final

import pytest

from codec import decode_response, encode_request
from codec.api_keys import ApiKey
from codec.headers import RequestHeader, encode_request_header, response_body_offset
from codec.registry import known_versions
from codec.walk import WALKED
from sidecar.core.ids import NodeId
from tests.support.fake_broker import FakeCluster
from tests.support.raw_client import RawConnection
from tests.support.sidecar_app import ServingSidecar, serving

FIRST_ADDRESSED: Final = {ApiKey.PRODUCE: 10, ApiKey.FETCH: 16, ApiKey.SHARE_FETCH: 0, ApiKey.SHARE_ACKNOWLEDGE: 0}
STRANGER: Final = 77
"""A broker that the sidecar has not met."""


def body_of(key: ApiKey, error_code: int) -> Mapping[str, Any]:
    name = "partition_responses" if key == ApiKey.PRODUCE else "partitions"
    nodes = (1, STRANGER) if error_code else ()
    return {
        "responses": [{name: [{"error_code": 0, "records": b"r"}, {"error_code": error_code, "records": b"r"}]}],
        "node_endpoints": [{"node_id": n, "host": f"kafka-{n}", "port": 9092, "rack": "a"} for n in nodes],
        "unknown_tags": {99: b"kept"},
    }


async def ask(client: RawConnection, key: ApiKey, version: int) -> dict[str, Any]:
    header = RequestHeader(api_key=key, api_version=version, correlation_id=7, client_id=None)
    body: dict[str, Any] = {"acks": 1} if key == ApiKey.PRODUCE else {}
    payload = encode_request_header(header) + encode_request(key, version, body)
    await client.send_bytes(struct.pack(">i", len(payload)) + payload)
    answer = await client.receive_frame()
    return decode_response(key, version, answer, response_body_offset(answer, key, version))


def has_session(sidecar: ServingSidecar) -> bool:
    """Whether the newest client has been promised anything."""
    return sidecar.app.driver.clients[-1].connection.session is not None


@pytest.mark.row("1")
@pytest.mark.parametrize("key", sorted(WALKED))
async def test_new_leaders_are_named_at_their_ports(key: ApiKey) -> None:
    async with FakeCluster(1) as cluster:
        broker = cluster.brokers[1]
        async with serving(str(broker.address), consistency={"scope": "connection"}) as sidecar:
            for version in known_versions(key) or ():
                async with await RawConnection.open(sidecar.nodes[1]) as client:
                    broker.handlers[key] = lambda asked: body_of(key, 0)
                    at_rest = await ask(client, key, version)
                    assert not at_rest.get("node_endpoints")
                    assert not has_session(sidecar)
                    broker.handlers[key] = lambda asked: body_of(key, 6)
                    moved = await ask(client, key, version)
                    assert has_session(sidecar)
                ports = sidecar.app.driver.listeners[0].ports
                at = {n: ports.advertised(NodeId(n)) for n in (1, STRANGER)}
                named = {e["node_id"]: (e["host"], e["port"]) for e in moved.get("node_endpoints", ())}
                assert named == (at if version >= FIRST_ADDRESSED[key] else {})
                assert moved.get("unknown_tags", {99: b"kept"}) == {99: b"kept"}
