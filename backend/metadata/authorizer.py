"""What a client may do, by the access rules of an image: Kafka's StandardAuthorizer.

    super user                                     may
    a rule of the resource denies it               may not
    a rule of the resource allows it               may
    the resource has rules, for whomever           may not
    the resource has none                          `allow_everyone_if_no_acl_found`

Rules of a resource are those for its name, for a prefix of it, and for `*`. A rule speaks of a client if it names its
principal or `User:*`, and its address or `*`. Some operations are allowed along with others (`_IMPLIED_BY`); denied
they have to be one by one. Pure; knows no API.
"""

import enum
from dataclasses import dataclass, field
from typing import Final, final

from backend.metadata.acls import WILDCARD, AclsImage, StandardAcl
from backend.metadata.client import ANYBODY, Client

NOT_ASKED: Final = -(2**31)
"""What stands for authorized operations (KIP-430) when the client did not ask for them."""
CLUSTER_NAME: Final = "kafka-cluster"
WILDCARD_PRINCIPAL: Final = "User:*"
_DENY: Final = 2
_ALLOW: Final = 3


@final
class Operation(enum.IntEnum):
    """Kafka's AclOperation, as far as requests need it."""

    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14


@final
class Resource(enum.IntEnum):
    """Kafka's ResourceType."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


_IMPLIED_BY: Final = {
    Operation.DESCRIBE: (Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS),
}
_OPERATIONS_OF: Final = {
    Resource.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DESCRIBE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    Resource.CLUSTER: (
        Operation.CREATE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
        Operation.ALTER,
        Operation.DESCRIBE,
    ),
}
"""The operations that there are on a resource."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizerSettings:
    """Configuration of the authorizer; principals are `Type:name`."""

    super_users: frozenset[str] = frozenset()
    allow_everyone_if_no_acl_found: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What one client may do by one image's rules.

    Attributes:
        client: Who asks.
        acls: The rules.
        settings: The authorizer's; None if there is none, and everybody may do everything.
    """

    client: Client = ANYBODY
    acls: AclsImage = field(default_factory=AclsImage.empty)
    settings: AuthorizerSettings | None = None

    def allows(self, operation: Operation, resource: Resource, name: str) -> bool:
        """Whether the client may do that to the resource with that name."""
        if self.settings is None or self.client.principal in self.settings.super_users:
            return True
        rules = self.acls.of_resource(resource, name)
        if not rules:
            return self.settings.allow_everyone_if_no_acl_found
        permissions = {acl.permission_type for acl in rules if self._speaks_of(acl, operation)}
        return _ALLOW in permissions and _DENY not in permissions

    def allows_on_cluster(self, operation: Operation) -> bool:
        """Whether the client may do that to the cluster as a whole."""
        return self.allows(operation, Resource.CLUSTER, CLUSTER_NAME)

    def operations(self, resource: Resource, name: str) -> int:
        """All that the client may do to a topic or the cluster, as bits (KIP-430)."""
        return sum(1 << of for of in _OPERATIONS_OF[resource] if self.allows(of, resource, name))

    def _speaks_of(self, acl: StandardAcl, operation: Operation) -> bool:
        if acl.principal not in (self.client.principal, WILDCARD_PRINCIPAL):
            return False
        if acl.host not in (self.client.host, WILDCARD):
            return False
        if acl.operation in (Operation.ALL, operation):
            return True
        return acl.permission_type == _ALLOW and acl.operation in _IMPLIED_BY.get(operation, ())
