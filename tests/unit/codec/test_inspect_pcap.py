"""Trees of captures: link types, streams put together again, answers with their requests, and what is missing."""

import random
import socket
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codec import encode_request, encode_response
from codec.api_keys import ApiKey
from codec.headers import RequestHeader, ResponseHeader, encode_request_header, encode_response_header
from codec.inspect import Entry, Fault, Section, UnreadableInput, sections
from codec.inspect.model import SECRET
from codec.inspect.pcap import is_pcap
from codec.inspect.render import line

FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
CLIENT, BROKER = ("127.0.0.1", 50000), ("127.0.0.1", 9092)
SEQUENCE_NEAR_WRAP = 2**32 - 10


def ip4(packet: bytes, source: str, target: str) -> bytes:
    start = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(packet), 1, 0x4000, 64, 6, 0)
    return start + socket.inet_aton(source) + socket.inet_aton(target) + packet


def ip6(packet: bytes, source: str, target: str) -> bytes:
    extension = bytes((6, 0)) + bytes(6)
    start = struct.pack(">IHBB", 0x60000000, len(extension) + len(packet), 60, 64)
    ends = socket.inet_pton(socket.AF_INET6, source) + socket.inet_pton(socket.AF_INET6, target)
    return start + ends + extension + packet


def tcp(source: int, target: int, sequence: int, flags: int, data: bytes) -> bytes:
    return struct.pack(">HHIIBBHHH", source, target, sequence, 0, 6 << 4, flags, 1000, 0, 0) + bytes(4) + data


LINKS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "null": (0, lambda ip: b"\2\0\0\0" + ip),
    "loop": (108, lambda ip: b"\0\0\0\2" + ip),
    "ethernet": (1, lambda ip: bytes(12) + (b"\x08\0" if ip[0] >> 4 == 4 else b"\x86\xdd") + ip),
    "vlan": (1, lambda ip: bytes(12) + b"\x81\0\0\x05" + (b"\x08\0" if ip[0] >> 4 == 4 else b"\x86\xdd") + ip),
    "raw": (101, lambda ip: ip),
    "raw bsd": (12, lambda ip: ip),
    "cooked": (113, lambda ip: bytes(14) + (b"\x08\0" if ip[0] >> 4 == 4 else b"\x86\xdd") + ip),
    "cooked 2": (276, lambda ip: (b"\x08\0" if ip[0] >> 4 == 4 else b"\x86\xdd") + bytes(18) + ip),
}


def pcap(packets: Sequence[bytes], *, link: int = 101, order: str = ">", nanoseconds: bool = False) -> bytes:
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    out = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 262144, link)
    for number, packet in enumerate(packets):
        out += struct.pack(order + "IIII", 1700000000 + number, 500, len(packet), len(packet)) + packet
    return out


@dataclass
class Talk:
    """Makes the packets of one connection."""

    client: tuple[str, int] = CLIENT
    broker: tuple[str, int] = BROKER
    sequences: dict[bool, int] = field(default_factory=lambda: {True: SEQUENCE_NEAR_WRAP, False: 100})
    wrap: Callable[[bytes, str, str], bytes] = ip4

    def packet(self, from_client: bool, data: bytes = b"", flags: int = ACK) -> bytes:
        source, target = (self.client, self.broker) if from_client else (self.broker, self.client)
        sequence = self.sequences[from_client]
        self.sequences[from_client] = (sequence + len(data) + bool(flags & (SYN | FIN))) % 2**32
        return self.wrap(tcp(source[1], target[1], sequence, flags, data), source[0], target[0])

    def open(self) -> list[bytes]:
        return [self.packet(True, flags=SYN), self.packet(False, flags=SYN | ACK), self.packet(True)]

    def close(self) -> list[bytes]:
        return [self.packet(True, flags=FIN | ACK), self.packet(False, flags=FIN | ACK)]

    def cut(self, from_client: bool, data: bytes, size: int) -> list[bytes]:
        return [self.packet(from_client, data[at : at + size]) for at in range(0, len(data), size)]


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def request(api_key: int, version: int, correlation_id: int, value: dict[str, Any]) -> bytes:
    header = RequestHeader(api_key=api_key, api_version=version, correlation_id=correlation_id, client_id="app")
    return framed(encode_request_header(header) + encode_request(api_key, version, value))


def response(api_key: int, version: int, correlation_id: int, value: dict[str, Any]) -> bytes:
    header = encode_response_header(ResponseHeader(correlation_id=correlation_id), api_key, version)
    return framed(header + encode_response(api_key, version, value))


def titles(found: Sequence[Section]) -> list[str]:
    """The last part of each title."""
    return [section.title.rpartition(": ")[2] for section in found]


def faults(found: Sequence[Section]) -> list[Fault]:
    return [item for section in found for item in section.items if isinstance(item, Fault)]


ASKED = request(ApiKey.API_VERSIONS, 3, 1, {"client_software_name": "me"}) + request(ApiKey.METADATA, 13, 2, {})
ANSWERED = response(ApiKey.API_VERSIONS, 3, 1, {}) + response(ApiKey.METADATA, 13, 2, {})
TITLES = ["request ApiVersions v3", "request Metadata v13", "response ApiVersions v3", "response Metadata v13"]


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize("wrap", [ip4, ip6])
@pytest.mark.parametrize("order", [">", "<"])
def test_every_link_type_and_byte_order(name: str, wrap: Any, order: str) -> None:
    number, link = LINKS[name]
    client, broker = (("::1", 50000), ("::1", 9092)) if wrap is ip6 else (CLIENT, BROKER)
    talk = Talk(client=client, broker=broker, wrap=wrap)
    packets = [*talk.open(), talk.packet(True, ASKED), talk.packet(False, ANSWERED), *talk.close()]
    found = list(sections(pcap([link(p) for p in packets], link=number, order=order, nanoseconds=wrap is ip6)))
    assert titles(found) == TITLES
    assert faults(found) == []
    host = "[::1]" if wrap is ip6 else "127.0.0.1"
    assert found[0].title.startswith("packet 4, 3.000000 s, connection 1 ")
    assert f"{host}:50000 > {host}:9092: request" in found[0].title
    assert f"{host}:9092 > {host}:50000: response" in found[2].title


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.randoms(use_true_random=False))
def test_late_and_repeated_segments_change_nothing(asked: int, answered: int, choice: random.Random) -> None:
    talk = Talk()
    opened = talk.open()
    client, broker = talk.cut(True, ASKED, asked), talk.cut(False, ANSWERED, answered)
    for packets in (client, broker):
        # A repetition that begins elsewhere, as a kernel sends it that joins segments anew.
        start, data = len(opened[0]), b"".join(packet[44:] for packet in packets)
        sequence = SEQUENCE_NEAR_WRAP + 1 if packets is client else 101
        at = choice.randrange(len(data))
        source, target = (CLIENT, BROKER) if packets is client else (BROKER, CLIENT)
        again = tcp(source[1], target[1], (sequence + at) % 2**32, ACK, data[at : at + 30])
        packets += [*choice.choices(packets, k=2), ip4(again, source[0], target[0])]
        choice.shuffle(packets)
        assert start == 44
    found = list(sections(pcap(opened + client + broker + talk.close())))
    assert titles(found) == TITLES
    assert faults(found) == []


def test_connections_are_kept_apart_and_chosen_by_port() -> None:
    one, two = Talk(), Talk(client=("10.0.0.9", 50001), broker=("10.0.0.1", 29092))
    packets = [
        *one.open(),
        *two.open(),
        one.packet(True, ASKED[:9]),
        two.packet(True, ASKED),
        one.packet(True, ASKED[9:]),
    ]
    found = list(sections(pcap(packets)))
    assert [section.title.split(", ")[0] for section in found] == ["packet 8", "packet 8", "packet 9", "packet 9"]
    assert ["connection 2" in section.title for section in found] == [True, True, False, False]
    only = list(sections(pcap(packets), ports=frozenset({9092})))
    assert ["> 127.0.0.1:9092" in section.title for section in only] == [True, True]


def test_the_same_ports_again_are_another_connection() -> None:
    first, second = Talk(), Talk(sequences={True: 5_000_000, False: 9_000_000})
    packets = [
        *first.open(),
        first.packet(True, ASKED),
        first.packet(True, flags=RST),
        *second.open(),
        second.packet(True, ASKED),
        second.packet(False, ANSWERED),
    ]
    found = list(sections(pcap(packets)))
    assert titles(found) == TITLES[:2] + TITLES
    assert faults(found) == []


def test_produce_without_acks_has_no_answer() -> None:
    talk = Talk()
    asked = request(ApiKey.PRODUCE, 9, 1, {"acks": 0}) + request(ApiKey.PRODUCE, 9, 2, {"acks": 1})
    packets = [*talk.open(), talk.packet(True, asked), talk.packet(False, response(ApiKey.PRODUCE, 9, 2, {}))]
    found = list(sections(pcap(packets)))
    assert titles(found) == ["request Produce v9", "request Produce v9", "response Produce v9"]
    assert faults(found) == []


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (response(ApiKey.METADATA, 13, 2, {}), "2; the oldest unanswered request, ApiVersions v3, has 1"),
        (ANSWERED + response(ApiKey.METADATA, 13, 3, {}), "3 answers no request"),
        (framed(b"\0\0"), "4 bytes wanted, 2 there"),
    ],
)
def test_an_answer_that_belongs_to_no_request_is_named(answer: bytes, reason: str) -> None:
    talk = Talk()
    found = list(sections(pcap([*talk.open(), talk.packet(True, ASKED), talk.packet(False, answer)])))
    assert [fault.reason for fault in faults(found)] == [reason]


def test_lost_segments_are_named_and_end_their_direction_only() -> None:
    talk = Talk()
    packets = [*talk.open(), *talk.cut(True, ASKED, 20), talk.packet(False, ANSWERED)]
    del packets[4]
    found = list(sections(pcap(packets)))
    assert [fault.reason for fault in faults(found)] == [
        "20 bytes are not in the capture; the rest of this direction is left out"
    ]
    assert titles(found)[:2] == ["response to a request that was not captured"] * 2


def test_a_snap_length_that_cuts_packets_is_noticed() -> None:
    talk = Talk()
    whole = pcap([*talk.open(), talk.packet(True, ASKED), talk.packet(True, ASKED)])
    cut = talk_cut(whole)
    reasons = [fault.reason for fault in faults(list(sections(cut)))]
    assert reasons == ["6 bytes are not in the capture; the rest of this direction is left out"]


def talk_cut(capture: bytes) -> bytes:
    """The capture with six bytes of its fourth packet left out, as the packet's header says."""
    at = 24
    for _ in range(3):
        at += 16 + struct.unpack_from(">I", capture, at + 8)[0]
    seconds, fraction, kept, size = struct.unpack_from(">IIII", capture, at)
    header = struct.pack(">IIII", seconds, fraction, kept - 6, size)
    return capture[:at] + header + capture[at + 16 : at + 16 + kept - 6] + capture[at + 16 + kept :]


def test_a_capture_that_begins_later_says_so() -> None:
    talk = Talk()
    old = response(ApiKey.METADATA, 13, 77, {})
    packets = [talk.packet(False, old), talk.packet(True, ASKED), talk.packet(False, ANSWERED)]
    found = list(sections(pcap(packets)))
    assert titles(found) == ["began before the capture", "response to a request that was not captured", *TITLES]
    assert faults(found) == []


def test_what_is_unfinished_at_the_end_is_a_remark_and_a_fault_when_it_was_closed() -> None:
    talk = Talk()
    packets = [*talk.open(), talk.packet(True, ASKED[:-1])]
    found = list(sections(pcap(packets)))
    assert titles(found)[-1].endswith("bytes of a frame whose rest comes after the capture")
    assert faults(found) == []
    closed = list(sections(pcap(packets + talk.close())))
    assert [fault.reason for fault in faults(closed)] == [
        f"closed after {len(request(ApiKey.METADATA, 13, 2, {})) - 1} bytes of a frame"
    ]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01", "a TLS handshake, not Kafka frames"),
        (b"GET /metrics HTTP/1.1\r\n\r\n", "HTTP, not Kafka frames"),
        (b"\xff\xff\xff\xff", "-1 bytes; the limit is 104857600; no frame can follow"),
    ],
)
def test_connections_that_are_not_kafkas_are_named_once(data: bytes, reason: str) -> None:
    talk = Talk()
    found = list(sections(pcap([*talk.open(), talk.packet(True, data), talk.packet(True, data)])))
    assert [fault.reason for fault in faults(found)] == [reason]


@pytest.mark.parametrize(("mechanism", "rounds"), [("PLAIN", 1), ("SCRAM-SHA-256", 2), ("GSSAPI", 2)])
def test_raw_sasl_tokens_are_not_shown(mechanism: str, rounds: int) -> None:
    talk = Talk()
    asked = request(ApiKey.SASL_HANDSHAKE, 0, 1, {"mechanism": mechanism})
    packets = [*talk.open(), talk.packet(True, asked), talk.packet(False, response(ApiKey.SASL_HANDSHAKE, 0, 1, {}))]
    for _ in range(rounds):
        packets += [talk.packet(True, framed(b"\0u\0hunter2")), talk.packet(False, framed(b"hunter2"))]
    packets += [talk.packet(True, ASKED), talk.packet(False, ANSWERED)]
    found = list(sections(pcap(packets)))
    text = "\n".join(line(item, section) for section in found for item in section.items)
    assert "hunter" not in text
    assert b"hunter".hex() not in text
    if mechanism == "GSSAPI":
        assert set(titles(found[2:])) == {"SASL token"}
    else:
        assert titles(found) == [
            "request SaslHandshake v0",
            "response SaslHandshake v0",
            *["SASL token"] * 2 * rounds,
            *TITLES,
        ]


def test_the_login_of_a_capture_is_hidden() -> None:
    talk = Talk()
    asked = request(ApiKey.SASL_AUTHENTICATE, 2, 1, {"auth_bytes": b"\0u\0hunter2"})
    found = list(sections(pcap([*talk.open(), talk.packet(True, asked)])))
    (hidden,) = [
        item for section in found for item in section.items if isinstance(item, Entry) and item.value is SECRET
    ]
    assert hidden.name == "auth_bytes"


def test_what_is_no_tcp_is_passed_over() -> None:
    talk = Talk()
    udp = bytearray(talk.packet(True))
    udp[9] = 17
    fragment = bytearray(Talk().packet(True, ASKED))
    fragment[6:8] = b"\x20\x05"
    arp = bytes(20)
    cut = talk.packet(True)[:14]
    packets = [*talk.open(), bytes(udp), bytes(fragment), arp, b"", b"\x45\0", cut, talk.packet(True, ASKED)]
    assert titles(list(sections(pcap(packets)))) == TITLES[:2]


def test_captures_that_cannot_be_read_say_why() -> None:
    with pytest.raises(UnreadableInput, match=r"save it as pcap, for example with `editcap -F pcap IN OUT`"):
        is_pcap(b"\x0a\x0d\x0d\x0a1234")
    with pytest.raises(UnreadableInput, match="link type 147"):
        list(sections(pcap([], link=147)))
    with pytest.raises(UnreadableInput, match="its header alone has 24"):
        list(sections(pcap([])[:20]))
    with pytest.raises(UnreadableInput, match="packet 1 claims 4294967295 bytes"):
        list(sections(pcap([]) + struct.pack(">IIII", 0, 0, 2**32 - 1, 0)))
    cut_off = pcap([*Talk().open(), Talk().packet(True, ASKED)])[:-1]
    assert list(sections(cut_off)) == []


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_damaged_capture_gives_sections_or_unreadable_input_only(data: st.DataObject) -> None:
    talk = Talk()
    whole = pcap([*talk.open(), *talk.cut(True, ASKED, 30), talk.packet(False, ANSWERED), *talk.close()])
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(4, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = list(sections(bytes(damaged)))
    except UnreadableInput:
        return
    assert all(line(item, section) for section in found for item in section.items)
