"""Composes a look at a cluster that needs no running sidecar: what the commands import, and all they import of it.

The counterpart of `sidecar.app`: that one serves, this one only looks.
"""

import contextlib
from collections.abc import AsyncIterator, Sequence

from config.sidecar import ClusterSecurity
from config.values import HostPort
from sidecar.core.survey import NoHead, Standing, Survey
from sidecar.core.view import Head
from sidecar.net.access import Access
from sidecar.net.surveyor import PATIENCE, ClusterUnreachable, Patience, Surveyor

__all__ = ["ClusterUnreachable", "Head", "NoHead", "Patience", "Standing", "Survey", "Surveyor", "surveying"]


@contextlib.asynccontextmanager
async def surveying(
    bootstrap: Sequence[HostPort], security: ClusterSecurity, patience: Patience = PATIENCE
) -> AsyncIterator[Surveyor]:
    """A surveyor that is closed in the end.

    Raises:
        config.faults.ConfigError: a file that the section names cannot be used.
    """
    surveyor = Surveyor(bootstrap, Access(security), patience)
    try:
        yield surveyor
    finally:
        surveyor.close()
