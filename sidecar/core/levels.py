"""Levels and depths: what a read requires of its session (consistency.md section 5)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

from sidecar.core.bounds import Bound, Why
from sidecar.core.ids import Seq


class Level(Enum):
    """What a read is promised. Named as in the configuration."""

    EVENTUAL = "eventual"
    SESSION = "session"
    LINEARIZABLE = "linearizable"


class Depth(Enum):
    """Whether what is required must be shown, or also acted upon. ``auto``: as `sidecar.core.apis` says for the API."""

    AUTO = "auto"
    VISIBLE = "visible"
    EFFECTIVE = "effective"


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """What one API gets instead of the default; None: the default."""

    level: Level | None = None
    depth: Depth | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The default, and the overrides by API key."""

    level: Level = Level.SESSION
    depth: Depth = Depth.AUTO
    apis: Mapping[int, Override] = field(default_factory=lambda: MappingProxyType({}))

    def level_of(self, api_key: int) -> Level:
        """The level that reads of this API get."""
        override = self.apis.get(api_key)
        return (override and override.level) or self.level

    def effective(self, api_key: int, *, by_nature: bool) -> bool:
        """Whether reads of this API demand depth effective; ``by_nature``: what ``auto`` means for this request."""
        override = self.apis.get(api_key)
        depth = (override and override.depth) or self.depth
        return by_nature if depth is Depth.AUTO else depth is Depth.EFFECTIVE


def required(level: Level, session: Bound, arrived: Seq) -> Bound:
    """The bound of one read, captured now: it never rises afterwards.

    Args:
        session: the bound of the session that reads.
        arrived: when the read arrived.
    """
    match level:
        case Level.EVENTUAL:
            return Bound()
        case Level.SESSION:
            return session.capture()
        case Level.LINEARIZABLE:
            bound = session.capture()
            # The head after the latest of these moments includes what any broker had at them.
            promises = [*bound.brokers.values(), *bound.acted.values()]
            latest = max([arrived, *(promise.seq for promise in promises)])
            bound.brokers.clear()
            bound.acted.clear()
            bound.after_head(latest, Why.LINEARIZABLE)
            return bound
