"""A capture in the classic pcap format to TCP segments.

Reads the link types of loopback and of ordinary captures, IPv4 and IPv6; passes over whatever is not TCP. Knows nothing
of streams. Source: the pcap file format (draft-ietf-opsawg-pcap), the link types' list of tcpdump.org.
"""

import ipaddress
import struct
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from codec.inspect.model import UnreadableInput

_MAGICS: Final = {
    b"\xa1\xb2\xc3\xd4": (">", 1_000_000),
    b"\xd4\xc3\xb2\xa1": ("<", 1_000_000),
    b"\xa1\xb2\x3c\x4d": (">", 1_000_000_000),
    b"\x4d\x3c\xb2\xa1": ("<", 1_000_000_000),
}
_PCAPNG: Final = b"\x0a\x0d\x0d\x0a"
_FILE_HEADER_BYTES: Final = 24
_PACKET_HEADER_BYTES: Final = 16
_PACKET_BYTES_MAX: Final = 1 << 20

_ETHERNET_IPV4: Final = 0x0800
_ETHERNET_IPV6: Final = 0x86DD
_VLAN_TAGS: Final = (0x8100, 0x88A8)
_TCP: Final = 6
_IPV6_EXTENSIONS: Final = (0, 43, 60)
_MORE_FRAGMENTS_AND_OFFSET: Final = 0x3FFF

FIN: Final = 0x01
SYN: Final = 0x02
RST: Final = 0x04


class Endpoint(NamedTuple):
    """One side of a TCP connection."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Segment(NamedTuple):
    """One TCP segment as captured.

    `packet` counts from 1 as capture tools do, `at_s` is seconds since the capture's first packet, `missing` the bytes
    of its payload that the capture has cut off.
    """

    packet: int
    at_s: float
    source: Endpoint
    target: Endpoint
    sequence: int
    flags: int
    payload: bytes
    missing: int


def is_pcap(start: bytes) -> bool:
    """Whether a file that begins like this is a capture.

    Raises:
        UnreadableInput: It is one in the newer format.
    """
    if start[:4] == _PCAPNG:
        raise UnreadableInput("a pcapng capture; save it as pcap, for example with `editcap -F pcap IN OUT`")
    return start[:4] in _MAGICS


def segments(buffer: bytes) -> Iterator[Segment]:
    """The TCP segments of a capture, in its order; a packet cut off at the end of the file is left out.

    Raises:
        UnreadableInput: The link type is not one of those read here, or a packet claims an impossible size.
    """
    order, ticks = _MAGICS[bytes(buffer[:4])]
    if len(buffer) < _FILE_HEADER_BYTES:
        raise UnreadableInput(f"a capture of {len(buffer)} bytes; its header alone has {_FILE_HEADER_BYTES}")
    link = struct.unpack_from(order + "I", buffer, 20)[0] & 0xFFFF
    network = _NETWORK.get(link)
    if network is None:
        raise UnreadableInput(f"link type {link}; loopback, Ethernet, raw IP and Linux cooked captures are read")
    header = struct.Struct(order + "IIII")
    offset, number, first_s = _FILE_HEADER_BYTES, 0, None
    while offset + _PACKET_HEADER_BYTES <= len(buffer):
        seconds, fraction, captured, original = header.unpack_from(buffer, offset)
        offset += _PACKET_HEADER_BYTES
        number += 1
        if captured > _PACKET_BYTES_MAX:
            raise UnreadableInput(f"packet {number} claims {captured} bytes; the capture is damaged")
        if offset + captured > len(buffer):
            return
        packet = bytes(buffer[offset : offset + captured])
        offset += captured
        at_s = seconds + fraction / ticks
        first_s = at_s if first_s is None else first_s
        found = _segment(packet, max(0, original - captured), network, number, at_s - first_s)
        if found is not None:
            yield found


def _segment(
    packet: bytes, missing: int, network: Callable[[bytes], tuple[int, int] | None], number: int, at_s: float
) -> Segment | None:
    """The TCP segment in a packet, or None for anything else, fragments and headers that are cut off included."""
    try:
        found = network(packet)
        if found is None:
            return None
        version, start = found
        carried = _ipv4(packet, start) if version == 4 else _ipv6(packet, start)
        if carried is None:
            return None
        source, target, start, end = carried
        source_port, target_port, sequence = struct.unpack_from(">HHI", packet, start)
        data = start + (packet[start + 12] >> 4) * 4
        flags = packet[start + 13]
    except (struct.error, IndexError, ipaddress.AddressValueError):
        return None
    # A packet that the sending kernel has not yet cut into segments may say 0 for its length: then it is all there is.
    end = len(packet) + missing if end is None else end
    return Segment(
        packet=number,
        at_s=at_s,
        source=Endpoint(source, source_port),
        target=Endpoint(target, target_port),
        sequence=sequence,
        flags=flags,
        payload=packet[data : min(end, len(packet))],
        missing=max(0, end - max(data, len(packet))),
    )


def _ipv4(packet: bytes, start: int) -> tuple[str, str, int, int | None] | None:
    """Addresses, where TCP begins, and where the packet ends."""
    (total,) = struct.unpack_from(">H", packet, start + 2)
    (fragment,) = struct.unpack_from(">H", packet, start + 6)
    if packet[start + 9] != _TCP or fragment & _MORE_FRAGMENTS_AND_OFFSET:
        return None
    source, target = (str(ipaddress.IPv4Address(packet[at : at + 4])) for at in (start + 12, start + 16))
    return source, target, start + (packet[start] & 0x0F) * 4, start + total if total else None


def _ipv6(packet: bytes, start: int) -> tuple[str, str, int, int | None] | None:
    (length,) = struct.unpack_from(">H", packet, start + 4)
    kind, at = packet[start + 6], start + 40
    while kind in _IPV6_EXTENSIONS:
        kind, at = packet[at], at + 8 + packet[at + 1] * 8
    if kind != _TCP:
        return None
    source, target = (str(ipaddress.IPv6Address(packet[at : at + 16])) for at in (start + 8, start + 24))
    return source, target, at, start + 40 + length if length else None


def _by_nibble(packet: bytes, start: int) -> tuple[int, int] | None:
    version = packet[start] >> 4
    return (version, start) if version in (4, 6) else None


def _by_protocol(packet: bytes, at: int, start: int) -> tuple[int, int] | None:
    (protocol,) = struct.unpack_from(">H", packet, at)
    while protocol in _VLAN_TAGS:
        (protocol,) = struct.unpack_from(">H", packet, start + 2)
        start += 4
    version = {_ETHERNET_IPV4: 4, _ETHERNET_IPV6: 6}.get(protocol)
    return None if version is None else (version, start)


_NETWORK: Final[dict[int, Callable[[bytes], tuple[int, int] | None]]] = {
    # Loopback of BSD and macOS: four bytes of address family first, whose numbers differ by system.
    0: lambda packet: _by_nibble(packet, 4),
    108: lambda packet: _by_nibble(packet, 4),
    1: lambda packet: _by_protocol(packet, 12, 14),
    # Raw IP, under the numbers of different systems.
    12: lambda packet: _by_nibble(packet, 0),
    14: lambda packet: _by_nibble(packet, 0),
    101: lambda packet: _by_nibble(packet, 0),
    228: lambda packet: _by_nibble(packet, 0),
    229: lambda packet: _by_nibble(packet, 0),
    # Linux cooked, as captured on all interfaces at once.
    113: lambda packet: _by_protocol(packet, 14, 16),
    276: lambda packet: _by_protocol(packet, 0, 20),
}
"""Link type to what finds the IP header: its version and offset."""
