"""The file of users for SASL PLAIN: one a line, `name:password`; empty lines and lines that begin with `#` are ignored.

A fault names the line and never shows it. Names hold no colon; passwords may.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from config.faults import ConfigError, Fault
from config.files import read_secret

USERS_MAX: Final = 10_000


def read_users(path: str | Path) -> dict[str, str]:
    """User to password.

    Raises:
        ConfigError: the file cannot be read, or a line is no user.
    """
    users: dict[str, str] = {}
    for number, line in enumerate(read_secret(path).splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, password = line.partition(":")
        reason = None
        if not (name and colon and password) or "\0" in line:
            reason = "must be NAME:PASSWORD"
        elif name in users:
            reason = "names a user for the second time"
        elif len(users) == USERS_MAX:
            reason = f"is beyond the {USERS_MAX} users that there may be"
        if reason is not None:
            raise ConfigError([Fault(name=f"{path}:{number}", reason=reason)])
        users[name] = password
    if not users:
        raise ConfigError([Fault(name=str(path), reason="names no user; it must have a line NAME:PASSWORD")])
    return users
