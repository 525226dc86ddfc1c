"""Where the differential tests find Kafka's own jars."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.kafka.jars import jars, missing


@pytest.fixture(scope="session")
def kafka_jars() -> Callable[[str], Path]:
    """A function from a Kafka version to the folder with its jars; they are downloaded once.

    Where jars cannot be had, the tests that ask for them are skipped; they fail when TIDEGATE_REQUIRE_KAFKA is set.
    """

    def locate(version: str) -> Path:
        reason = missing(version)
        if reason and os.environ.get("TIDEGATE_REQUIRE_KAFKA"):
            pytest.fail(reason)
        if reason:
            pytest.skip(reason)
        return jars(version)

    return locate
