"""Who reads, and from what: the images of one broker, and the client that asks. The vocabulary of `reads`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

from backend.metadata.authorizer import Access, AuthorizerSettings
from backend.metadata.client import ANYBODY, Client
from backend.metadata.image import Image
from backend.metadata.tokens import TokenSettings


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """What an answer depends on besides the request.

    Attributes:
        image: What the broker shows.
        acting: What its authorizer and its credentials act by: the same image, or an earlier one, for they follow it.
        node_id: The broker that answers.
        listener_name: The listener that the client uses; it sees the brokers' endpoints of that name.
        client: Who asks.
        authorizer: Who may do what; None if there is no authorizer.
        tokens: How delegation tokens are made; None if there are none.
        static_configs: What the broker was started with, key by key, `node.id` and the like.
        log_dir: The directory that DescribeLogDirs names.
    """

    image: Image
    acting: Image
    node_id: int
    listener_name: str = "PLAINTEXT"
    client: Client = ANYBODY
    authorizer: AuthorizerSettings | None = None
    tokens: TokenSettings | None = None
    static_configs: Mapping[str, str] = field(default_factory=dict)
    log_dir: str = "/tidegate"

    @property
    def access(self) -> Access:
        """What the client may do, by the rules that are in effect."""
        return Access(client=self.client, acls=self.acting.acls, settings=self.authorizer)
