"""The subject of an X.509 certificate as Kafka names a principal by it: RFC 2253, as Java writes it. Pure.

A certificate is a sequence of parts, each a tag, a length and a content (DER). The subject is a sequence of sets of
attributes; it is written in reverse. Attributes that RFC 2253 has no name for are written by their numbers, and their
values as the hex of their DER. The certificate was verified before; here it is only read.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

_NAMES: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_ENCODINGS: Final = {12: "utf-8", 19: "ascii", 20: "latin-1", 22: "ascii", 28: "utf-32-be", 30: "utf-16-be"}
"""UTF8String, PrintableString, T61String, IA5String, UniversalString, BMPString."""
_SUBJECT: Final = 5
"""Its place in the certificate when the version is stated: version, serial, algorithm, issuer, validity, subject."""
_VERSION_TAG: Final = 0xA0
_SPECIAL: Final = frozenset(',+"\\<>;')
_LONG: Final = 0x80


class BadCertificate(Exception):
    """What a TLS library has taken for a certificate cannot be read."""


class _Part(NamedTuple):
    tag: int
    content: bytes
    whole: bytes


def subject_of(certificate: bytes) -> str:
    """The subject of a certificate in DER, for instance `CN=ann,OU=ops,O=Acme`.

    Raises:
        BadCertificate: It is none.
    """
    try:
        (whole,) = _parts(certificate)
        (signed, *_) = _parts(whole.content)
        parts = list(_parts(signed.content))
        subject = parts[_SUBJECT if parts[0].tag == _VERSION_TAG else _SUBJECT - 1]
        names = [
            "+".join(_attribute(attribute) for attribute in _parts(several.content))
            for several in _parts(subject.content)
        ]
    except (IndexError, ValueError, LookupError) as error:
        raise BadCertificate("the certificate has no subject that can be read") from error
    return ",".join(reversed(names))


def _parts(encoded: bytes) -> Iterator[_Part]:
    at = 0
    while at < len(encoded):
        start, tag, size, at = at, encoded[at], encoded[at + 1], at + 2
        if size & _LONG:
            width = size & ~_LONG
            size, at = int.from_bytes(encoded[at : at + width], "big"), at + width
        if at + size > len(encoded):
            raise ValueError("cut short")
        yield _Part(tag, encoded[at : at + size], encoded[start : at + size])
        at += size


def _attribute(attribute: _Part) -> str:
    kind, value = _parts(attribute.content)
    number = _number(kind.content)
    name, encoding = _NAMES.get(number), _ENCODINGS.get(value.tag)
    if name is None or encoding is None:
        return f"{name or number}=#{value.whole.hex()}"
    return f"{name}={_escaped(value.content.decode(encoding))}"


def _number(encoded: bytes) -> str:
    arcs: list[int] = []
    arc = 0
    for byte in encoded:
        arc = arc << 7 | byte & 0x7F
        if not byte & _LONG:
            arcs.append(arc)
            arc = 0
    first = min(arcs[0] // 40, 2)
    return ".".join(map(str, (first, arcs[0] - 40 * first, *arcs[1:])))


def _escaped(value: str) -> str:
    escaped = "".join(f"\\{char}" if char in _SPECIAL else char for char in value)
    if value.startswith(("#", " ")):
        escaped = f"\\{escaped}"
    if value.endswith(" ") and len(value) > 1:
        escaped = f"{escaped[:-1]}\\ "
    return escaped
