"""Where raw tokens end, in bytes that are cut anywhere."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codec import CodecError
from codec.api_keys import ApiKey
from codec.headers import RequestHeader, encode_request_header
from sidecar.core.raw_tokens import Passed, is_answer, is_request, pass_tokens

TOKENS = st.lists(st.sampled_from([b"", b"\0a\0b", b"\0alice\0secret", b"n,,n=alice,r=1", b"c=biws,r=12"]), max_size=4)
REQUEST = encode_request_header(
    RequestHeader(api_key=ApiKey.API_VERSIONS, api_version=3, correlation_id=9, client_id="x")
)


def framed(*payloads: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(payload)) + payload for payload in payloads)


@pytest.mark.row("5.2")
@given(TOKENS, st.data())
def test_tokens_end_with_the_first_request_wherever_the_bytes_are_cut(tokens: list[bytes], data: st.DataObject) -> None:
    whole = framed(*tokens, REQUEST)
    end = len(framed(*tokens))
    assert pass_tokens(whole, 1000, is_request) == Passed(end, 0, over=True)
    cut = data.draw(st.integers(0, len(whole)))
    found = pass_tokens(whole[:cut], 1000, is_request)
    assert found.end <= min(cut, end)
    assert not found.over or found.end == end
    assert found.end + found.wanted <= len(whole)
    assert pass_tokens(whole[found.end :], 1000, is_request) == Passed(end - found.end, 0, over=True)


@pytest.mark.row("5.2")
@given(TOKENS, st.data())
def test_tokens_of_a_broker_end_with_the_answer_to_the_oldest_request(tokens: list[bytes], data: st.DataObject) -> None:
    whole = framed(*tokens, struct.pack(">i", 77) + b"answer")
    end = len(framed(*tokens))
    assert pass_tokens(whole, 1000, is_answer(77)) == Passed(end, 0, over=True)
    assert pass_tokens(whole, 1000, is_answer(None)) == Passed(len(whole), 0, over=False)
    cut = data.draw(st.integers(0, len(whole)))
    found = pass_tokens(whole[:cut], 1000, is_answer(77))
    assert found.end <= min(cut, end)
    assert pass_tokens(whole[found.end :], 1000, is_answer(77)) == Passed(end - found.end, 0, over=True)


@pytest.mark.parametrize("size", [-1, 1001])
def test_a_size_that_makes_no_sense_is_refused_with_its_place(size: int) -> None:
    with pytest.raises(CodecError) as error:
        pass_tokens(framed(b"token") + struct.pack(">i", size), 1000, is_request)
    assert error.value.offset == 9
