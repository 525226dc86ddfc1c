"""What a configuration key is: its type, its default, what values it takes, and how Kafka writes them.

The tables of keys are in `topic_configs`, `broker_configs` and `group_configs`. Texts of refusals are those of Kafka's
ConfigDef, as Kafka 4.4 was seen to give them.
"""

import enum
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, final

from backend.metadata.errors import ApiError
from codec.error_codes import ErrorCode

Value = bool | int | float | str | list[str]
"""What a text means: of BOOLEAN, of INT, SHORT and LONG, of DOUBLE, of STRING, of LIST."""

Check = Callable[[str, Value], str | None]
"""From name and value to what is wrong with it, as it stands behind Kafka's "Invalid value ... for configuration", or
None."""


@final
class ConfigType(enum.IntEnum):
    """The numbers of DescribeConfigs."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7


@final
class ConfigSource(enum.IntEnum):
    """Where a value comes from; the numbers of DescribeConfigs."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
_LIMITS: Final = {ConfigType.SHORT: 2**15, ConfigType.INT: 2**31, ConfigType.LONG: 2**63}
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}")
_DOUBLE: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey:
    """One key.

    Attributes:
        name: Kafka's name.
        type: What its text means.
        default: The text of its default, or None where Kafka has none.
        check: What else a value must be.
    """

    name: str
    type: ConfigType
    default: str | None
    check: Check | None = None

    def parse(self, text: str) -> Value:
        """What a text means to this key.

        Raises:
            ApiError: INVALID_CONFIG with Kafka's words.
        """
        value = _parse(self.type, text.strip())
        if value is None:
            raise invalid_value(self.name, text.strip(), _EXPECTED[self.type])
        reason = None if self.check is None else self.check(self.name, value)
        if reason is not None:
            raise invalid_value(self.name, _shown(value), reason)
        return value

    def canonical(self, text: str) -> str:
        """The text as Kafka shows it: trimmed, in the normal form of its type; for texts that `parse` takes."""
        return render(self.parse(text))


def invalid_value(name: str, shown: str, reason: str) -> ApiError:
    """Kafka's refusal of a value."""
    return ApiError(ErrorCode.INVALID_CONFIG, f"Invalid value {shown} for configuration {name}: {reason}")


def at_least(least: int) -> Check:
    """Numbers from `least` on."""

    def check(_: str, value: Value) -> str | None:
        assert isinstance(value, int | float)
        return f"Value must be at least {least}" if value < least else None

    return check


def between(least: int, most: int) -> Check:
    """Numbers from `least` to `most`, both included."""

    def check(_: str, value: Value) -> str | None:
        assert isinstance(value, int | float)
        if value < least:
            return f"Value must be at least {least}"
        return f"Value must be no more than {most}" if value > most else None

    return check


def one_of(*allowed: str) -> Check:
    """One of the texts; of a list, each element."""

    def check(name: str, value: Value) -> str | None:
        reason = f"String must be one of: {', '.join(allowed)}"
        if not isinstance(value, list):
            return None if value in allowed else reason
        for element in value:
            if element not in allowed:
                raise invalid_value(name, element, reason)
        return None

    return check


def render(value: Value) -> str:
    """The text of a value, as Kafka shows it."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return java_double(value)
        case list():
            return ",".join(value)
        case _:
            return str(value)


def java_double(value: float) -> str:
    """A finite number as Java's Double.toString writes it: plain from 0.001 up to 10 million, else with an exponent."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    digits = "".join(map(str, Decimal(repr(value)).as_tuple().digits)).rstrip("0")
    exponent = Decimal(repr(value)).adjusted()
    return f"{'-' if value < 0 else ''}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _parse(of: ConfigType, text: str) -> Value | None:
    match of:
        case ConfigType.BOOLEAN:
            return {"true": True, "false": False}.get(text.lower())
        case ConfigType.INT | ConfigType.SHORT | ConfigType.LONG:
            if not _INTEGER.fullmatch(text):
                return None
            number = int(text)
            return number if -_LIMITS[of] <= number < _LIMITS[of] else None
        case ConfigType.DOUBLE:
            return float(text.rstrip("dDfF")) if _DOUBLE.fullmatch(text) else None
        case ConfigType.LIST:
            return [part.strip() for part in text.split(",")] if text else []
        case _:
            return text


_EXPECTED: Final = {
    ConfigType.BOOLEAN: "Expected value to be either true or false",
    ConfigType.INT: "Not a number of type INT",
    ConfigType.SHORT: "Not a number of type SHORT",
    ConfigType.LONG: "Not a number of type LONG",
    ConfigType.DOUBLE: "Not a number of type DOUBLE",
}


def _shown(value: Value) -> str:
    return f"[{', '.join(value)}]" if isinstance(value, list) else render(value)
