"""The access rules of an image, and which of them a filter means. Sits under `image`; decides no access."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import Final, Self, final

from rpds import HashTrieMap

from backend.metadata.errors import ReplayError
from backend.metadata.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord, Uuid

WILDCARD: Final = "*"


@final
class PatternType(enum.IntEnum):
    """Kafka's PatternType; `MATCH` and `ANY` stand in filters only."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


ANY: Final = 1
"""The number for "any" in Kafka's ResourceType, PatternType, AclOperation and AclPermissionType."""

RESOURCE_TYPES: Final = ("UNKNOWN", "ANY", "TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER")
PATTERN_TYPES: Final = ("UNKNOWN", "ANY", "MATCH", "LITERAL", "PREFIXED")
OPERATIONS: Final = (
    "UNKNOWN",
    "ANY",
    "ALL",
    "READ",
    "WRITE",
    "CREATE",
    "DELETE",
    "ALTER",
    "DESCRIBE",
    "CLUSTER_ACTION",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
    "IDEMPOTENT_WRITE",
    "CREATE_TOKENS",
    "DESCRIBE_TOKENS",
    "TWO_PHASE_COMMIT",
)
PERMISSION_TYPES: Final = ("UNKNOWN", "ANY", "DENY", "ALLOW")
"""Kafka's names; the number on the wire is the place in the row. A number beyond it is unknown, as 0 is."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StandardAcl:
    """One access rule, without its id; the numbers are places in the rows of names above."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

    @classmethod
    def of(cls, record: AccessControlEntryRecord) -> Self:
        """The rule that a record adds."""
        return cls(
            resource_type=record.resource_type,
            resource_name=record.resource_name,
            pattern_type=record.pattern_type,
            principal=record.principal,
            host=record.host,
            operation=record.operation,
            permission_type=record.permission_type,
        )

    def to_record(self, acl_id: Uuid) -> AccessControlEntryRecord:
        """The record that adds the rule under that id."""
        return AccessControlEntryRecord(
            id=acl_id,
            resource_type=self.resource_type,
            resource_name=self.resource_name,
            pattern_type=self.pattern_type,
            principal=self.principal,
            host=self.host,
            operation=self.operation,
            permission_type=self.permission_type,
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AclFilter:
    """Which rules are meant: None and `ANY` match all (KIP-290 for the patterns)."""

    resource_type: int
    resource_name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission_type: int

    def matches(self, acl: StandardAcl) -> bool:
        """Whether a rule is meant."""
        return (
            self.resource_type in (ANY, acl.resource_type)
            and self._matches_pattern(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (ANY, acl.operation)
            and self.permission_type in (ANY, acl.permission_type)
        )

    def _matches_pattern(self, acl: StandardAcl) -> bool:
        match self.pattern_type:
            case PatternType.ANY:
                return self.resource_name in (None, acl.resource_name)
            case PatternType.MATCH if self.resource_name is not None:
                if acl.pattern_type == PatternType.PREFIXED:
                    return self.resource_name.startswith(acl.resource_name)
                return acl.resource_name in (self.resource_name, WILDCARD)
            case PatternType.MATCH:
                return True
            case _:
                return self.pattern_type == acl.pattern_type and self.resource_name in (None, acl.resource_name)


Pattern = tuple[int, int, str]
"""Resource type, pattern type, name."""
_LITERAL: Final = int(PatternType.LITERAL)
_PREFIXED: Final = int(PatternType.PREFIXED)
_NO_LENGTHS: Final[HashTrieMap[int, int]] = HashTrieMap()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AclsImage:
    """All access rules.

    Attributes:
        by_id: Id to rule.
        ids: Rule to id: no rule is there twice.
        by_pattern: Resource type, pattern type and name to the rules of that pattern.
        prefix_lengths: Resource type to how long the prefixes in its patterns are, and how many are so long. Few
            lengths are in use, so only they are looked up for a name, not every prefix that it has.
    """

    by_id: HashTrieMap[Uuid, StandardAcl]
    ids: HashTrieMap[StandardAcl, Uuid]
    by_pattern: HashTrieMap[Pattern, tuple[StandardAcl, ...]]
    prefix_lengths: HashTrieMap[int, HashTrieMap[int, int]]

    @classmethod
    def empty(cls) -> Self:
        """No rule."""
        return cls(by_id=HashTrieMap(), ids=HashTrieMap(), by_pattern=HashTrieMap(), prefix_lengths=HashTrieMap())

    def matching(self, acl_filter: AclFilter) -> list[tuple[Uuid, StandardAcl]]:
        """The rules that a filter means, in an order that depends on the rules alone."""
        found = [(acl_id, acl) for acl_id, acl in self.by_id.items() if acl_filter.matches(acl)]
        return sorted(found, key=lambda item: sort_key(item[1]))

    def of_resource(self, resource_type: int, name: str) -> list[StandardAcl]:
        """The rules whose pattern a resource matches: its name, a prefix of it, or any name."""
        literals = (name,) if name == WILDCARD else (name, WILDCARD)
        patterns = [(resource_type, _LITERAL, literal) for literal in literals]
        lengths = self.prefix_lengths.get(resource_type, _NO_LENGTHS)
        patterns += [(resource_type, _PREFIXED, name[:length]) for length in lengths if length <= len(name)]
        found: list[StandardAcl] = []
        for pattern in patterns:
            found += self.by_pattern.get(pattern, ())
        return found

    def add(self, record: AccessControlEntryRecord) -> AclsImage:
        """With a rule more."""
        acl = StandardAcl.of(record)
        pattern = _pattern(acl)
        before = self.by_pattern.get(pattern, ())
        alike = (*(known for known in before if known != acl), acl)
        return replace(
            self,
            by_id=self.by_id.insert(record.id, acl),
            ids=self.ids.insert(acl, record.id),
            by_pattern=self.by_pattern.insert(pattern, alike),
            prefix_lengths=self.prefix_lengths if before else _counted(self.prefix_lengths, pattern, 1),
        )

    def remove(self, record: RemoveAccessControlEntryRecord) -> AclsImage:
        """Without a rule.

        Raises:
            ReplayError: No rule has that id.
        """
        acl = self.by_id.get(record.id)
        if acl is None:
            raise ReplayError(f"no access rule has the id {record.id.hex()}")
        pattern = _pattern(acl)
        alike = tuple(known for known in self.by_pattern[pattern] if known != acl)
        return replace(
            self,
            by_id=self.by_id.remove(record.id),
            ids=self.ids.remove(acl),
            by_pattern=self.by_pattern.insert(pattern, alike) if alike else self.by_pattern.remove(pattern),
            prefix_lengths=self.prefix_lengths if alike else _counted(self.prefix_lengths, pattern, -1),
        )


def _pattern(acl: StandardAcl) -> Pattern:
    return acl.resource_type, acl.pattern_type, acl.resource_name


def _counted(
    prefix_lengths: HashTrieMap[int, HashTrieMap[int, int]], pattern: Pattern, change: int
) -> HashTrieMap[int, HashTrieMap[int, int]]:
    """With one prefix more or less, if the pattern is one."""
    resource_type, pattern_type, name = pattern
    if pattern_type != _PREFIXED:
        return prefix_lengths
    lengths = prefix_lengths.get(resource_type, _NO_LENGTHS)
    count = lengths.get(len(name), 0) + change
    lengths = lengths.insert(len(name), count) if count else lengths.remove(len(name))
    return prefix_lengths.insert(resource_type, lengths) if lengths else prefix_lengths.remove(resource_type)


def sort_key(acl: StandardAcl) -> tuple[int, str, int, str, str, int, int]:
    """An order of rules in which those of one resource are neighbours."""
    return (
        acl.resource_type,
        acl.resource_name,
        acl.pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission_type,
    )
