"""YAML text to plain values, with the line of every key.

Reads the subset that a configuration needs: one document of mappings, lists and scalars. Scalars follow the core schema
of YAML 1.2 (`yes` and `off` are text, `010` is ten); aliases, tags, duplicate keys and anything oversized are faults.
`${NAME}` in a scalar becomes the value of that environment variable and is then text; `$${` stands for `${`. Built on
PyYAML's events, so nothing is ever constructed but dict, list, str, int, bool and None. Knows no key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias, final

import yaml

from config.faults import Fault, KeyPath, dotted, printable

DOCUMENT_BYTES_MAX: Final = 1 << 20
DEPTH_MAX: Final = 16
NODES_MAX: Final = 20_000
SCALAR_LENGTH_MAX: Final = 4096

Plain: TypeAlias = "dict[str, Plain] | list[Plain] | str | int | bool | None"

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_WORDS: Final[Mapping[str, bool | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_VARIABLE = re.compile(r"\$\$\{|\$\{([^{}]*)\}|\$\{")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document that was read, and what was wrong with it as YAML.

    Attributes:
        name: the file's name, for faults.
        value: the plain value; what was faulty is left out of it or None.
        lines: the line of every key and list entry, counted from 1.
        faults: in the order found.
        faulty: places whose value is not what the author wrote; () when the document as a whole is unusable.
    """

    name: str
    value: Plain
    lines: Mapping[KeyPath, int]
    faults: tuple[Fault, ...]
    faulty: frozenset[KeyPath]

    def line(self, path: KeyPath) -> int:
        """The line of the key at `path`, or of the nearest section around it that is there."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def is_faulty(self, path: KeyPath) -> bool:
        """Whether the value at `path`, or one around it, already has a fault of its own."""
        return any(path[:length] in self.faulty for length in range(len(path) + 1))

    def fault(self, path: KeyPath, reason: str) -> Fault:
        """A fault of the key at `path`."""
        return Fault(name=self.name, line=self.line(path), path=dotted(path), reason=reason)


def read_document(text: str, name: str, environment: Mapping[str, str]) -> Document:
    """Read one YAML document; never raises for what the text holds: see `Document.faults`.

    Args:
        text: at most `DOCUMENT_BYTES_MAX` characters.
        name: what faults call the text, normally the file's name.
        environment: the variables that `${NAME}` may take.
    """
    reader = _Reader(name, environment)
    value: Plain = None
    if len(text) > DOCUMENT_BYTES_MAX:
        reader.refuse((), 1, f"must be at most {DOCUMENT_BYTES_MAX} bytes")
    else:
        try:
            value = reader.document(yaml.parse(text, Loader=yaml.SafeLoader))
        except _GivenUpError:
            value = None
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            reader.refuse((), mark.line + 1 if mark else 1, f"not YAML: {_syntax(error)}")
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, error.position) + 1
            reader.refuse((), line, f"not YAML: character U+{error.character:04X} is not allowed")
    return Document(
        name=name,
        value=value,
        lines=reader.lines,
        faults=tuple(reader.faults),
        faulty=frozenset(reader.faulty),
    )


class _GivenUpError(Exception):
    """The rest of the document cannot be read; the fault is noted."""


@final
@dataclass(slots=True)
class _Reader:
    """Turns the events of one document into values; collects lines and faults on the way."""

    name: str
    environment: Mapping[str, str]
    lines: dict[KeyPath, int] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    faulty: set[KeyPath] = field(default_factory=set)
    _nodes: int = 0

    def refuse(self, path: KeyPath, line: int, reason: str) -> None:
        self.faults.append(Fault(name=self.name, line=line, path=dotted(path), reason=reason))
        self.faulty.add(path)

    def document(self, events: Iterator[yaml.Event]) -> Plain:
        starts = (yaml.StreamStartEvent, yaml.DocumentStartEvent)
        first = next((event for event in events if not isinstance(event, starts)), None)
        if first is None or isinstance(first, yaml.StreamEndEvent):
            return {}
        value = self._node((), first, events)
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                self.refuse((), _line(event), "must be a single document; remove the line `---` and all below it")
                break
        return value

    def _node(self, path: KeyPath, event: yaml.Event, events: Iterator[yaml.Event]) -> Plain:
        self._nodes += 1
        if self._nodes > NODES_MAX:
            self.refuse((), _line(event), f"must have at most {NODES_MAX} keys and values")
            raise _GivenUpError
        if len(path) > DEPTH_MAX:
            self.refuse((), _line(event), f"must not nest deeper than {DEPTH_MAX} levels")
            raise _GivenUpError
        if isinstance(event, yaml.AliasEvent):
            self.refuse(path, _line(event), "aliases (`*name`) are not accepted; write the value out")
            return None
        if getattr(event, "tag", None) is not None:
            self.refuse(path, _line(event), "tags (`!name`) are not accepted")
        match event:
            case yaml.MappingStartEvent():
                return self._mapping(path, events)
            case yaml.SequenceStartEvent():
                return self._sequence(path, events)
            case yaml.ScalarEvent():
                return self._scalar(path, event)
            case _:  # pragma: no cover - PyYAML yields no other event where a node is due
                raise AssertionError(event)

    def _mapping(self, path: KeyPath, events: Iterator[yaml.Event]) -> Plain:
        entries: dict[str, Plain] = {}
        for event in events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            if not isinstance(event, yaml.ScalarEvent):
                self.refuse(path, _line(event), "keys must be plain words")
                raise _GivenUpError
            key = event.value
            at = (*path, key)
            duplicate = key in entries
            if duplicate:
                self.refuse(at, _line(event), f"duplicate key; it is already on line {self.lines[at]}")
            else:
                self.lines.setdefault(at, _line(event))
            value = self._node(at, next(events), events)
            if not duplicate:
                entries[key] = value
        return entries

    def _sequence(self, path: KeyPath, events: Iterator[yaml.Event]) -> Plain:
        entries: list[Plain] = []
        for event in events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            at = (*path, len(entries))
            self.lines.setdefault(at, _line(event))
            entries.append(self._node(at, event, events))
        return entries

    def _scalar(self, path: KeyPath, event: yaml.ScalarEvent) -> Plain:
        text: str = event.value
        if len(text) > SCALAR_LENGTH_MAX:
            self.refuse(path, _line(event), f"must be at most {SCALAR_LENGTH_MAX} characters")
            return None
        if "${" in text:
            return self._substituted(path, event, text)
        if not event.implicit[0]:
            return text
        if text in _WORDS:
            return _WORDS[text]
        return int(text) if _INTEGER.fullmatch(text) else text

    def _substituted(self, path: KeyPath, event: yaml.ScalarEvent, text: str) -> str:
        missing: list[str] = []

        def replacement(match: re.Match[str]) -> str:
            if match[0] == "$${":
                return "${"
            variable = match[1]
            if variable is None or not _NAME.fullmatch(variable):
                missing.append("`${` must be followed by a variable's name and `}`; write `$${` for the text `${`")
            elif variable not in self.environment:
                missing.append(f"environment variable {printable(variable)} is not set")
            else:
                return self.environment[variable]
            return ""

        value = _VARIABLE.sub(replacement, text)
        for reason in dict.fromkeys(missing):
            self.refuse(path, _line(event), reason)
        return value


def _syntax(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or error.context or "the text ends too early"
    return "indent with spaces, not tabs" if "'\\t'" in problem else printable(problem)


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def children(value: Plain, path: KeyPath) -> Iterator[tuple[KeyPath, Plain]]:
    """The entries of a mapping or list with their places; nothing for a scalar."""
    match value:
        case dict():
            yield from (((*path, key), entry) for key, entry in value.items())
        case list():
            yield from (((*path, index), entry) for index, entry in enumerate(value))
        case _:
            yield from ()
