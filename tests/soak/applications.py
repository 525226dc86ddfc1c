"""The applications of the soak: one that administers, one that produces and consumes."""

import gc
import itertools
import json
import subprocess
import sys
import threading
from types import TracebackType
from typing import Any, Final, Self, final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.kafka.java import end_group

CALL_S_MAX: Final = 30.0
END_S_MAX: Final = 120.0
TOPICS_A_CLIENT: Final = 10
PAUSE_S: Final = 0.2


@final
class Application:
    """Creates topics and reads them at once.

    Attributes:
        reads: how many reads were answered.
        stale: those that did not show the topic that this application had just been told of.
        errors: what failed; brokers are killed meanwhile.
    """

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self.reads = self.stale = 0
        self.errors: list[str] = []
        self._bootstrap = bootstrap
        self._prefix = prefix
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="application")
        self._thread.start()

    def stop(self) -> None:
        """No further topic."""
        self._over.set()
        self._thread.join()
        # What an exception kept alive keeps its connections open.
        gc.collect()

    def _run(self) -> None:
        names = (f"{self._prefix}-{number}" for number in itertools.count())
        while not self._over.wait(PAUSE_S):
            # A new client every few topics: applications restart as well.
            admin = AdminClient({"bootstrap.servers": self._bootstrap})
            for name in itertools.islice(names, TOPICS_A_CLIENT):
                try:
                    self._create_and_read(admin, name)
                except KafkaException as error:
                    self.errors.append(str(error))

    def _create_and_read(self, admin: AdminClient, name: str) -> None:
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(CALL_S_MAX)
        shown = admin.list_topics(timeout=CALL_S_MAX).topics
        self.reads += 1
        self.stale += name not in shown
        admin.delete_topics([name])[name].result(CALL_S_MAX)


@final
class SteadyClient:
    """A producer and a consumer in a process of their own, see `tests.support.steady_client`."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._last_line = ""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.steady_client", bootstrap, topic],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, name="steady client's output", daemon=True)
        self._reader.start()

    def result(self) -> dict[str, Any]:
        """End it, and take its report."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(END_S_MAX)
        self._reader.join()
        return dict(json.loads(self._last_line))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        end_group(self._process)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._last_line = line
