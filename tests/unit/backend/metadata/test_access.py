"""Access rules, quotas and SCRAM credentials, where the comparison with Kafka does not reach."""

import hashlib
import itertools

import pytest
import scramp

from backend.metadata.acls import ANY, AclFilter, StandardAcl
from backend.metadata.client import Client
from backend.metadata.controller import WriteContext, WriteRequest, decide
from backend.metadata.reads import Reader, answer
from backend.metadata.records import ClientQuotaRecord, UserScramCredentialRecord
from codec.api_keys import ApiKey
from tests.support.memory_backend import MemoryBackend

LITERAL, PREFIXED, MATCH = 3, 4, 2
RULE = {
    "resource_type": 2,
    "resource_name": "orders",
    "resource_pattern_type": LITERAL,
    "principal": "User:bob",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
ALL = {
    "resource_type_filter": ANY,
    "resource_name_filter": None,
    "pattern_type_filter": ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": ANY,
    "permission_type": ANY,
}


def acl(name: str, pattern_type: int) -> StandardAcl:
    return StandardAcl(
        resource_type=2,
        resource_name=name,
        pattern_type=pattern_type,
        principal="User:bob",
        host="*",
        operation=3,
        permission_type=3,
    )


@pytest.mark.parametrize(
    ("name", "pattern_type", "found"),
    [
        (None, ANY, {"orders", "*", "ord", "other"}),
        (None, MATCH, {"orders", "*", "ord", "other"}),
        (None, LITERAL, {"orders", "*", "other"}),
        (None, PREFIXED, {"ord"}),
        ("orders", ANY, {"orders"}),
        ("orders", LITERAL, {"orders"}),
        ("orders", MATCH, {"orders", "*", "ord"}),
        ("ord", PREFIXED, {"ord"}),
        ("ord", MATCH, {"*", "ord"}),
        ("or", MATCH, {"*"}),
        ("*", LITERAL, {"*"}),
        ("*", MATCH, {"*"}),
        ("orders", 9, set()),
    ],
)
def test_a_pattern_filter_means_what_kip_290_says(name: str | None, pattern_type: int, found: set[str]) -> None:
    acls = [acl("orders", LITERAL), acl("*", LITERAL), acl("other", LITERAL), acl("ord", PREFIXED)]
    wanted = AclFilter(
        resource_type=ANY,
        resource_name=name,
        pattern_type=pattern_type,
        principal=None,
        host=None,
        operation=ANY,
        permission_type=ANY,
    )
    assert {candidate.resource_name for candidate in acls if wanted.matches(candidate)} == found


def test_rules_are_read_from_what_the_broker_acts_by() -> None:
    backend = MemoryBackend()
    before = backend.image
    backend.ask(ApiKey.CREATE_ACLS, 3, {"creations": [RULE]})
    for acting, found in ((before, 0), (backend.image, 1)):
        reader = Reader(image=backend.image, acting=acting, node_id=1)
        assert len(answer(ApiKey.DESCRIBE_ACLS, 3, ALL, reader)["resources"]) == found


def test_the_same_rule_is_kept_once() -> None:
    backend = MemoryBackend()
    for _ in range(2):
        backend.ask(ApiKey.CREATE_ACLS, 3, {"creations": [RULE, RULE]})
    assert len(backend.image.acls.by_id) == 1
    backend.ask(ApiKey.DELETE_ACLS, 3, {"filters": [ALL, ALL]})
    assert len(backend.image.acls.by_id) == 0


@pytest.mark.parametrize(("mechanism", "known"), [(1, scramp.ScramMechanism("SCRAM-SHA-256")), (2, None)])
def test_the_stored_keys_are_those_of_rfc_5802(mechanism: int, known: scramp.ScramMechanism | None) -> None:
    oracle = known or scramp.ScramMechanism("SCRAM-SHA-512")
    salt, iterations = b"0123456789abcdef", 4096
    _, stored_key, server_key, _ = oracle.make_auth_info("pencil", iteration_count=iterations, salt=salt)
    hash_name = {1: "sha256", 2: "sha512"}[mechanism]
    upsertion = {
        "name": "user",
        "mechanism": mechanism,
        "iterations": iterations,
        "salt": salt,
        "salted_password": hashlib.pbkdf2_hmac(hash_name, b"pencil", salt, iterations),
    }
    request = WriteRequest(
        api_key=ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        api_version=0,
        body={"deletions": [], "upsertions": [upsertion]},
        client=Client(),
        broker_id=1,
    )
    context = WriteContext(now_ms=0, new_uuid=lambda: bytes(16))
    (record,) = decide(request, MemoryBackend().image, context).records
    assert isinstance(record, UserScramCredentialRecord)
    assert (record.salt, record.stored_key, record.server_key) == (salt, stored_key, server_key)


def test_the_parts_of_an_entity_come_in_any_order() -> None:
    parts = [{"entity_type": "user", "entity_name": "bob"}, {"entity_type": "client-id", "entity_name": None}]
    found = set()
    for ordered in itertools.permutations(parts):
        backend = MemoryBackend()
        ops = [{"key": "request_percentage", "value": 5.0, "remove": False}]
        body = {"entries": [{"entity": list(ordered), "ops": ops}], "validate_only": False}
        backend.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, body)
        found |= set(backend.image.client_quotas.entities)
    assert found == {(("client-id", None), ("user", "bob"))}


def test_a_quota_that_is_set_already_needs_no_record() -> None:
    backend = MemoryBackend()
    entity = [{"entity_type": "user", "entity_name": "bob"}]
    ops = [{"key": "request_percentage", "value": 5.0, "remove": False}]
    body = {"entries": [{"entity": entity, "ops": ops}], "validate_only": False}
    request = WriteRequest(api_key=ApiKey.ALTER_CLIENT_QUOTAS, api_version=1, body=body, client=Client(), broker_id=1)
    context = WriteContext(now_ms=0, new_uuid=lambda: bytes(16))
    (record,) = decide(request, backend.image, context).records
    assert isinstance(record, ClientQuotaRecord)
    backend.commit([record])
    assert decide(request, backend.image, context).records == ()
