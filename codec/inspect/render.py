"""A section as lines for people: offset, bytes, name and value, indented by depth. Secrets never get here."""

from typing import Any, Final

from codec.inspect.model import Entry, Fault, Secret, Section

_BYTES_SHOWN: Final = 8
_VALUE_BYTES_SHOWN: Final = 32
_TEXT_SHOWN: Final = 100
_HEX_WIDTH: Final = 2 * _BYTES_SHOWN + 2


def line(item: Entry | Fault, section: Section) -> str:
    """One item of a section's tree as one line."""
    return _fault(item, section.base) if isinstance(item, Fault) else _entry(item, section)


def _entry(entry: Entry, section: Section) -> str:
    shown = "" if isinstance(entry.value, Secret) else _hex(section.buffer, entry.start, entry.end)
    name = f"{'  ' * entry.depth}{entry.name}"
    text = _text(entry)
    start = f"{entry.start + section.base:8}  {shown:<{_HEX_WIDTH}}  {name}"
    return f"{start}: {text}" if text else start


def _fault(fault: Fault, base: int) -> str:
    return f"{fault.offset + base:8}  {'':<{_HEX_WIDTH}}  WRONG {fault.field}: {fault.reason}"


def _hex(buffer: bytes, start: int, end: int) -> str:
    if end - start > _BYTES_SHOWN:
        return f"{buffer[start : start + _BYTES_SHOWN].hex()}.."
    return buffer[start:end].hex()


def _text(entry: Entry) -> str:
    if entry.is_parts:
        return entry.note
    value = _value(entry.value, entry.end - entry.start)
    return f"{value} ({entry.note})" if entry.note else value


def _value(value: Any, size: int) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return _quoted(value)
        case bytes():
            return _content(value)
        case Secret():
            return f"{size} bytes, not shown"
        case _:
            return str(value)


def _quoted(text: str) -> str:
    """The text with quotes, nothing in it that moves a cursor."""
    shown = text if len(text) <= _TEXT_SHOWN else text[:_TEXT_SHOWN]
    escaped = "".join(c if c.isprintable() and c not in '"\\' else _escape(c) for c in shown)
    return f'"{escaped}"' + (f".. {len(text)} characters" if len(text) > _TEXT_SHOWN else "")


def _escape(character: str) -> str:
    return f"\\{character}" if character in '"\\' else character.encode("unicode_escape").decode()


def _content(value: bytes) -> str:
    """Short bytes as text if they are, else as hex."""
    piece = value[:_VALUE_BYTES_SHOWN]
    size = f".. {len(value)} bytes" if len(value) > len(piece) else ""
    try:
        text = piece.decode()
    except UnicodeDecodeError:
        return f"0x{piece.hex()}{size}"
    if piece and text.isprintable():
        return f"{_quoted(text)}{size}"
    return f"0x{piece.hex()}{size}"
