"""These tests run on the loop of the product: uvloop's TLS is not asyncio's."""

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """One kind of loop for every test below this folder."""
    return {"uvloop": uvloop.new_event_loop}
