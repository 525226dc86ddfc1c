"""Frames as lines of text: `request HEX` or `response KEY VERSION HEX`, the four bytes of size in the HEX.

Empty lines and lines that begin with `#` are passed over; HEX may have spaces. Bytes that are no such frame are a fault
in its tree; a line that is no such line ends the reading.
"""

from collections.abc import Iterable, Iterator

from codec.inspect.frame import Api, request_section, response_section
from codec.inspect.model import Section, UnreadableInput

_FORMS = "a line is `request HEX` or `response KEY VERSION HEX`"
_INT16_MAX = 0x7FFF


def text_sections(lines: Iterable[str]) -> Iterator[Section]:
    """One section a line.

    Raises:
        UnreadableInput: While iterating; names the line.
    """
    for number, line in enumerate(lines, 1):
        match line.split():
            case [] | ["#", *_]:
                continue
            case [word, *_] if word.startswith("#"):
                continue
            case ["request", *digits] if digits:
                yield request_section(_bytes(digits, number), where=f"line {number}: ")
            case ["response", key, version, *digits] if digits:
                api = Api(_number(key, "KEY", number), _number(version, "VERSION", number))
                yield response_section(_bytes(digits, number), api, where=f"line {number}: ")
            case _:
                raise UnreadableInput(f"line {number}: {_FORMS}")


def _number(text: str, what: str, line: int) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 5 and int(text) <= _INT16_MAX):
        raise UnreadableInput(f"line {line}: {what} is a number from 0 to {_INT16_MAX}; {_FORMS}")
    return int(text)


def _bytes(digits: list[str], line: int) -> bytes:
    try:
        return bytes.fromhex("".join(digits))
    except ValueError:
        raise UnreadableInput(f"line {line}: HEX has two hexadecimal digits a byte") from None
