"""A cluster of three brokers in memory, made of `backend.metadata` alone: no socket, no log, no lag.

For tests of the metadata plane by requests and answers. Every body goes through the codec both ways, so an answer that
its version could not carry fails here.
"""

import functools
import itertools
from collections.abc import Callable, Iterable
from typing import Any, Final

from backend.metadata.authorizer import AuthorizerSettings
from backend.metadata.client import ANYBODY, Client
from backend.metadata.controller import WRITES, WriteContext, WriteRequest, decide
from backend.metadata.features import METADATA_VERSION, SUPPORTED
from backend.metadata.image import Image
from backend.metadata.reads import Reader, answer
from backend.metadata.records import (
    Batch,
    BrokerEndpoint,
    ConfigRecord,
    FeatureLevelRecord,
    Record,
    RegisterBrokerRecord,
)
from backend.metadata.tokens import TokenSettings
from codec import decode_request, decode_response, encode_request, encode_response

CLUSTER_ID: Final = "memory-cluster"
LISTENER: Final = "PLAINTEXT"
STATIC_CONFIGS: Final = {
    "auto.create.topics.enable": "false",
    "default.replication.factor": "1",
    "num.partitions": "1",
    "node.id": "1",
    "process.roles": "broker",
}
CONTROLLER_ID: Final = 3001
NOW_MS: Final = 1_700_000_000_000


def broker(broker_id: int, *, fenced: bool = False, rack: str | None = None) -> RegisterBrokerRecord:
    """The registration of a broker at `host-ID:9092`."""
    return RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=broker_id.to_bytes(16, "big"),
        broker_epoch=broker_id,
        end_points=(BrokerEndpoint(name=LISTENER, host=f"host-{broker_id}", port=9092),),
        features=SUPPORTED,
        fenced=fenced,
        rack=rack,
    )


FRESH: Final[tuple[Record, ...]] = (
    FeatureLevelRecord(name=METADATA_VERSION, feature_level=33),
    broker(1),
    broker(2),
    broker(3),
)
"""Three brokers that have just started."""
ELR: Final[tuple[Record, ...]] = (
    FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1),
    ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1"),
)
"""What a fresh cluster of Kafka 4.4 has besides (KIP-966), and a backend of ours has not."""


class MemoryBackend:
    """The controller and broker 1 in one; a write is in the image before it is answered."""

    def __init__(
        self,
        records: Iterable[Record] = FRESH,
        *,
        authorizer: AuthorizerSettings | None = None,
        tokens: TokenSettings | None = None,
    ) -> None:
        self.now_ms = NOW_MS
        self._authorizer = authorizer
        self._tokens = tokens
        self._ids = itertools.count(1)
        self.image = Image.empty(CLUSTER_ID)
        self.commit(records)

    def commit(self, records: Iterable[Record]) -> None:
        """Append records to the log, and apply them."""
        batch = Batch(base_offset=self.image.highest_offset + 1, leader_epoch=1, records=tuple(records))
        self.image = self.image.apply(batch)

    def ask_as(self, user: str | None) -> Callable[[int, int, dict[str, Any]], dict[str, Any]]:
        """`ask` for a user that has logged in with a password."""
        client = Client() if user is None else Client(principal=f"User:{user}", may_ask_for_tokens=True)
        return functools.partial(self.ask, client=client)

    def ask(self, api_key: int, api_version: int, body: dict[str, Any], client: Client = ANYBODY) -> dict[str, Any]:
        """One request to broker 1, and its answer."""
        request = decode_request(api_key, api_version, encode_request(api_key, api_version, body))
        if api_key in WRITES:
            outcome = decide(self._write(api_key, api_version, request, client), self.image, self._context())
            self.commit(outcome.records)
            response = outcome.response
        else:
            reader = Reader(
                image=self.image,
                acting=self.image,
                node_id=1,
                listener_name=LISTENER,
                client=client,
                authorizer=self._authorizer,
                tokens=self._tokens,
                static_configs=STATIC_CONFIGS,
            )
            response = answer(api_key, api_version, request, reader)
        return decode_response(api_key, api_version, encode_response(api_key, api_version, response))

    def _write(self, api_key: int, api_version: int, body: dict[str, Any], client: Client) -> WriteRequest:
        return WriteRequest(api_key=api_key, api_version=api_version, body=body, client=client, broker_id=1)

    def _context(self) -> WriteContext:
        return WriteContext(
            now_ms=self.now_ms,
            authorizer=self._authorizer,
            tokens=self._tokens,
            new_uuid=lambda: next(self._ids).to_bytes(4, "big") * 4,
            static_configs=STATIC_CONFIGS,
            controller_id=CONTROLLER_ID,
        )
