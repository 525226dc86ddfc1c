"""What a running sidecar says of itself on its admin address: JSON documents and metrics. Blocking."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.support.address import Address

TIMEOUT_S = 10.0
POLL_INTERVAL_S = 0.02


class SidecarAdmin:
    """The admin listener of one sidecar."""

    def __init__(self, address: Address) -> None:
        self.address = address

    def get(self, path: str) -> tuple[int, Any]:
        """Status and parsed document of a path.

        Raises:
            OSError: if nobody answers there.
        """
        try:
            with urllib.request.urlopen(f"http://{self.address}{path}", timeout=TIMEOUT_S) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def rows(self, path: str) -> list[dict[str, Any]]:
        """A document that is a list of rows, from a path that always answers."""
        status, document = self.get(path)
        assert (status, type(document)) == (200, list), (path, status, document)
        return list(document)

    def broker(self, node_id: int) -> dict[str, Any] | None:
        """The row of one broker; None if it is not known, or no longer."""
        return next((row for row in self.rows("/brokers") if row["node_id"] == node_id), None)

    def metric(self, sample: str, **labels: str) -> float:
        """The sum of all samples of this full name that have these labels; 0 if there are none."""
        with urllib.request.urlopen(f"http://{self.address}/metrics", timeout=TIMEOUT_S) as answer:
            text = answer.read().decode()
        return sum(
            found.value
            for family in text_string_to_metric_families(text)
            for found in family.samples
            if found.name == sample and labels.items() <= found.labels.items()
        )

    def wait_until(self, done: Callable[[], bool], failure: str, timeout_s: float = 30.0) -> None:
        """Return when `done` says so.

        Raises:
            AssertionError: with `failure` and what the sidecar says of itself, after `timeout_s`.
        """
        deadline_s = time.monotonic() + timeout_s
        while not done():
            if time.monotonic() > deadline_s:
                state = {path: self.get(path)[1] for path in ("/readyz", "/brokers", "/head", "/held")}
                raise AssertionError(f"{failure} after {timeout_s} s: {json.dumps(state)}")
            time.sleep(POLL_INTERVAL_S)
