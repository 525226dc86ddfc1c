"""What a write is to the controller, what it may use besides the image, and what comes out.

The vocabulary of `controller` and the pages of its APIs.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, final

from backend.metadata.authorizer import Access, AuthorizerSettings
from backend.metadata.client import Client
from backend.metadata.errors import ApiError
from backend.metadata.image import Image
from backend.metadata.records import Record, Uuid
from backend.metadata.tokens import TokenSettings
from codec.error_codes import ErrorCode

Body = dict[str, Any]
"""A decoded body, in the form that `codec` gives and takes for its API and version."""

RECORDS_PER_WRITE_MAX: Final = 10000
"""How many records Kafka's controller commits for one request at most."""
EXCESSIVE: Final = (ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
"""What it says of more."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest:
    """A request to change metadata, as a broker hands it to the controller.

    Attributes:
        api_key: Which API.
        api_version: In which version the answer goes out.
        body: The decoded request.
        client: Who asks.
        broker_id: The broker that the client asked; a broker's own configuration can be changed there only.
    """

    api_key: int
    api_version: int
    body: Mapping[str, Any]
    client: Client
    broker_id: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WriteContext:
    """What the controller knows besides the image.

    Attributes:
        now_ms: Wall clock, milliseconds since 1970.
        new_uuid: A new random id at each call.
        num_partitions: For topics that leave it to the controller.
        replication_factor: Likewise.
        static_configs: What brokers were started with, for the configuration that CreateTopics reports.
        authorizer: Who may do what, by the rules of the image; None if there is no authorizer.
        tokens: How delegation tokens are made; None if there are none.
        controller_id: The node that decides, for messages that name it.
    """

    now_ms: int
    new_uuid: Callable[[], Uuid]
    num_partitions: int = 1
    replication_factor: int = 1
    authorizer: AuthorizerSettings | None = None
    tokens: TokenSettings | None = None
    controller_id: int = -1
    static_configs: Mapping[str, str] = field(default_factory=dict)

    def access(self, client: Client, image: Image) -> Access:
        """What the client may do, by the rules of the image."""
        return Access(client=client, acls=image.acls, settings=self.authorizer)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a write comes to.

    Attributes:
        records: To be committed together, in one batch; empty when nothing changes.
        response: The body of the answer, to be sent once the records, and all that was decided before them, are
            committed. That holds without records too: the answer may rest on an earlier write that is still under way.
    """

    records: tuple[Record, ...]
    response: Body


def error_fields(error: ApiError | None) -> Body:
    """`error_code` and `error_message` of one result."""
    if error is None:
        return {"error_code": ErrorCode.NONE.value, "error_message": None}
    return {"error_code": error.code.value, "error_message": error.message}
