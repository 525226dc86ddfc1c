"""`python -m tests.support.steady_client BOOTSTRAP TOPIC`: librdkafka, producing and consuming until told to stop.

Prints `progress N` whenever it has consumed another hundred records. At the end of standard input it stops producing,
consumes what is left and prints one JSON object: `sent`, `consumed` (different records), `repeated` (records seen more
than once), `lost`, `out_of_order`, the `errors` that the application was told of, and `connects`: every port to which
the client says in its log that it connects. `java/SteadyClient.java` does the same with the Java clients.
"""

import itertools
import json
import logging
import re
import sys
import threading
import time
from typing import Any

from confluent_kafka import Consumer as KafkaConsumer
from confluent_kafka import Producer as KafkaProducer

PACE_S = 0.002
REPORT_EVERY = 100
PATIENCE_S = 30.0
CONNECT = re.compile(r"Connecting to ipv4#[\d.]+:(\d+) ")


class Connects(logging.Handler):
    """Keeps the ports of librdkafka's own lines about connections."""

    def __init__(self) -> None:
        super().__init__()
        self.ports: set[int] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """See the class."""
        if found := CONNECT.search(record.getMessage()):
            self.ports.add(int(found[1]))


def main() -> None:
    """See the module."""
    bootstrap, topic = sys.argv[1:]
    errors: list[str] = []
    stop = threading.Event()

    def wait_for_end() -> None:
        sys.stdin.read()
        stop.set()

    threading.Thread(target=wait_for_end, daemon=True).start()

    def on_delivery(error: Any, message: Any) -> None:
        if error is not None:
            errors.append(f"delivery: {error}")

    def say(line: str) -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    connects = Connects()
    log = logging.getLogger("librdkafka")
    log.setLevel(logging.DEBUG)
    log.addHandler(connects)
    log.propagate = False
    common = {"bootstrap.servers": bootstrap, "debug": "broker"}
    producer = KafkaProducer({**common, "enable.idempotence": True, "linger.ms": 1}, logger=log)
    reading = {**common, "group.id": f"{topic}-group", "auto.offset.reset": "earliest"}
    consumer = KafkaConsumer(reading, logger=log)
    consumer.subscribe([topic])
    seen: list[int] = []
    sent = 0

    def take(timeout_s: float) -> None:
        for message in consumer.consume(100, timeout_s):
            if message.error() is not None:
                errors.append(f"consumer: {message.error()}")
                continue
            seen.append(int(message.value() or b"-1"))
            if len(seen) % REPORT_EVERY == 0:
                say(f"progress {len(seen)}")

    while not stop.is_set():
        producer.produce(topic, str(sent), on_delivery=on_delivery)
        sent += 1
        producer.poll(0)
        take(PACE_S)
    if left := producer.flush(PATIENCE_S):
        errors.append(f"producer: {left} records were not sent")
    deadline_s = time.monotonic() + PATIENCE_S
    while len(set(seen)) < sent and time.monotonic() < deadline_s:
        take(0.1)
    consumer.close()
    result = {
        "sent": sent,
        "consumed": len(set(seen)),
        "repeated": len(seen) - len(set(seen)),
        "lost": sent - len(set(seen)),
        "out_of_order": sum(after < before for before, after in itertools.pairwise(seen)),
        "errors": errors,
        "connects": sorted(connects.ports),
    }
    say(json.dumps(result))


if __name__ == "__main__":
    main()
