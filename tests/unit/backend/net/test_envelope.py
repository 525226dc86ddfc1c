"""A write on its way to the controller of another process: request, client and answer come out as they went in."""

from typing import Any, Final

import pytest

from backend.metadata.client import ANONYMOUS, Client
from backend.metadata.writes import WriteRequest
from backend.net.envelope import (
    ENVELOPE_VERSION,
    NO_BROKER,
    NO_OFFSET,
    broker_of,
    client_id_of,
    unwrap,
    unwrap_answer,
    wrap,
    wrap_answer,
)
from codec import CodecError, decode_request, encode_request
from codec.api_keys import ApiKey

TOPIC: Final = {"name": "orders", "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
CLIENTS: Final = [
    Client(),
    Client(principal=ANONYMOUS, host="10.0.0.7"),
    Client(principal="User:CN=alice,O=Example", host="2001:db8::1", may_ask_for_tokens=True),
    Client(principal="User:by:token", host="127.0.0.1", may_ask_for_tokens=False),
]


def request(client: Client, api_version: int = 7) -> WriteRequest:
    return WriteRequest(
        api_key=ApiKey.CREATE_TOPICS,
        api_version=api_version,
        body={"topics": [TOPIC], "timeout_ms": 9, "validate_only": False},
        client=client,
        broker_id=4,
    )


@pytest.mark.parametrize("client", CLIENTS, ids=str)
def test_a_write_and_its_client_come_out_as_they_went_in(client: Client) -> None:
    sent = encode_request(ApiKey.ENVELOPE, ENVELOPE_VERSION, wrap(request(client), correlation_id=11))
    body = decode_request(ApiKey.ENVELOPE, ENVELOPE_VERSION, sent)
    assert unwrap(body, broker_of(client_id_of(4))) == (request(client), 11)


@pytest.mark.parametrize(("api_version", "offset"), [(7, 321), (4, NO_OFFSET)])
def test_an_answer_says_which_offset_it_covers_where_its_header_has_room(api_version: int, offset: int) -> None:
    asked = request(Client(), api_version)
    response = {"throttle_time_ms": 0, "topics": [{"name": "orders", "error_code": 36, "error_message": "exists"}]}
    read, covered = unwrap_answer(asked, wrap_answer(asked, 11, response, 321))
    assert covered == offset
    assert read["topics"][0]["error_code"] == 36


def test_who_names_no_broker_is_none() -> None:
    assert [broker_of(name) for name in (None, "", "broker-", "broker-1x", "broker-7")] == [NO_BROKER] * 4 + [7]


def test_malformed_parts_are_the_codecs_error() -> None:
    body = wrap(request(CLIENTS[2]), correlation_id=1)
    damaged: list[dict[str, Any]] = [{"client_host_address": b"\1\2\3"}, {"request_principal": None}]
    damaged += [{"request_principal": body["request_principal"][:-cut]} for cut in (2, 9, 20)]
    damaged += [{"request_data": body["request_data"][:cut]} for cut in (0, 7, 20)]
    for part in damaged:
        with pytest.raises(CodecError):
            unwrap({**body, **part}, 1)
