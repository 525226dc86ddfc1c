"""Whatever a client sends that the codec can read, the metadata plane answers, and what it decides fits the image."""

from hypothesis import given, settings
from hypothesis import strategies as st

from backend.metadata.controller import WRITES
from backend.metadata.reads import READS
from backend.net.offers import OFFERS
from codec.schema import Message
from tests.support.memory_backend import ELR, FRESH, MemoryBackend
from tests.support.message_values import every_table, values

SPOKEN = {api_key: range(offer.first, offer.last + 1) for api_key, offer in OFFERS.items()}
TABLES = [
    (message, version)
    for message, version in every_table()
    if message.direction == "request"
    and message.api_key in WRITES | READS
    and version in SPOKEN.get(message.api_key, range(100))
]
TELLING = st.sampled_from(
    ("a", "a.b", "orders", "1", "2", "", "kafka-cluster", "User:a", "retention.ms", "cleanup.policy", "user", "ip")
)
SMALL = st.integers(-2, 5)
NARROWED = (
    *((field, TELLING) for field in ("resource_name", "entity_type", "principal", "host", "topic", "topic_name")),
    *((field, SMALL) for field in ("num_partitions", "replication_factor", "partition_index", "count", "mechanism")),
    *((field, SMALL) for field in ("operation", "permission_type", "match_type", "config_operation")),
    ("resource_type", st.sampled_from((2, 4, 8, 16, 32, 3))),
)
"""Values that mean something, so that more than the first check is met."""


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(TABLES), st.booleans(), st.data())
def test_every_request_has_an_answer(table: tuple[Message, int], telling: bool, data: st.DataObject) -> None:
    message, version = table
    body = data.draw(values(message, version, NARROWED if telling else (), unknown=False))
    backend = MemoryBackend((*FRESH, *ELR))
    backend.ask(19, 7, {"topics": [{"name": "orders", "num_partitions": 3, "replication_factor": 2}]})
    backend.ask(message.api_key, version, body)
