"""The backend's file: all faults at once in words for users, and which kind of file one is."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.backend import BackendConfig
from config.faults import ConfigError
from config.load import load_any, load_backend, parse_backend
from config.sidecar import SidecarConfig
from config.values import HostPort

BROKER = '{id: 1, roles: [broker], listen: "127.0.0.1:9092"}'
CONTROLLER = '{id: 2, roles: [controller], controller_listen: "127.0.0.1:9093"}'
BOTH = f"cluster_id: c\nnodes: [{BROKER}, {CONTROLLER}]\n"


def faults(text: str, **environment: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_backend(text, "f.yaml", environment)
    return [str(fault) for fault in caught.value.faults]


def test_the_shortest_file_has_all_defaults() -> None:
    config = parse_backend(BOTH, "f.yaml", {})
    broker, controller = config.nodes
    assert (broker.id, broker.roles, broker.listen) == (1, ("broker",), HostPort("127.0.0.1", 9092))
    assert (controller.controller_listen, controller.listen) == (HostPort("127.0.0.1", 9093), None)
    assert (config.data_dir, config.local, config.admin.bind) == (None, None, None)
    assert (config.noop_interval_ms, config.state_wait_ms) == (500, 3000)
    assert (config.defaults.num_partitions, config.defaults.replication_factor) == (1, 1)


def test_a_node_may_have_both_roles_and_roles_may_be_one_text() -> None:
    node = '{id: 1, roles: "controller, broker", listen: "h:1", controller_listen: "h:2"}'
    config = parse_backend(f"cluster_id: c\nnodes: [{node}]\n", "f.yaml", {})
    assert config.nodes[0].roles == ("controller", "broker")


def test_values_may_come_from_the_environment() -> None:
    text = f"cluster_id: ${{ID}}\nnodes: [{BROKER}, {CONTROLLER}]\nstate_wait_ms: ${{WAIT}}\n"
    config = parse_backend(text, "f.yaml", {"ID": "12", "WAIT": "0"})
    assert (config.cluster_id, config.state_wait_ms) == ("12", 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["f.yaml:1: cluster_id: required", "f.yaml:1: nodes: required"]),
        ("cluster_id: c\nnodes: []\n", ["f.yaml:2: nodes: must have at least one entry"]),
        (
            "cluster_id: c\nnodes: [{id: 1, roles: [leader]}]\n",
            ["f.yaml:2: nodes[0].roles[0]: must be controller or broker"],
        ),
        ("cluster_id: c\nnodes: [{id: 1, roles: []}]\n", ["f.yaml:2: nodes[0].roles: must have at least one entry"]),
        (
            "cluster_id: c\nnodes: [{id: -1, roles: [broker], listen: 'h:1'}]\n",
            ["f.yaml:2: nodes[0].id: must be between 0 and 2147483647"],
        ),
        (
            "cluster_id: c\nnodes: [{id: 1, roles: [broker, broker], listen: 'h:1'}]\n",
            ["f.yaml:2: nodes[0].roles: must not name a role twice"],
        ),
        (
            "cluster_id: c\nnodes: [{id: 1, roles: [broker]}, {id: 2, roles: [controller]}]\n",
            [
                "f.yaml:2: nodes[0].listen: required for a broker",
                "f.yaml:2: nodes[1].controller_listen: required for a controller",
            ],
        ),
        (
            f"cluster_id: c\nnodes:\n- {BROKER}\n- {{id: 2, roles: [controller], listen: 'h:1', controller_listen: "
            "'h:2', replay_delay_ms: 5}\n",
            [
                "f.yaml:4: nodes[1].listen: has no effect on a node without the role broker; leave it out",
                "f.yaml:4: nodes[1].replay_delay_ms: has no effect on a node without the role broker; leave it out",
            ],
        ),
        (
            "cluster_id: c\nnodes: [{id: 1, roles: [broker], listen: '0.0.0.0:1', controller_listen: 'h:1'}]\n",
            [
                "f.yaml:2: nodes[0].advertised_host: required where listen has a wildcard address",
                "f.yaml:2: nodes[0].controller_listen: has no effect on a node without the role controller; "
                "leave it out",
            ],
        ),
        (
            f"cluster_id: c\nnodes: [{BROKER}]\n",
            ["f.yaml:2: nodes: must have at least one node with the role controller"],
        ),
        (
            f"cluster_id: c\nnodes: [{CONTROLLER}]\n",
            ["f.yaml:2: nodes: must have at least one node with the role broker"],
        ),
        (
            BOTH + "defaults: {replication_factor: 2}\n",
            ["f.yaml:3: defaults.replication_factor: must not be above the number of brokers (1)"],
        ),
        (
            f"cluster_id: c\nnodes:\n- {BROKER}\n- {CONTROLLER}\n- {{id: 1, roles: [broker], listen: '0.0.0.0:9093', "
            "advertised_host: h}\n",
            [
                "f.yaml:5: nodes[2].id: must be unique among the nodes",
                "f.yaml:5: nodes[2].listen: has the port of controller_listen of node 2",
            ],
        ),
        (
            BOTH + "admin: {bind: '127.0.0.1:9092'}\n",
            ["f.yaml:3: admin.bind: has the port of listen of node 1"],
        ),
        (
            BOTH + "local: [1, 7, 1]\n",
            ["f.yaml:3: local[1]: must be the id of a node", "f.yaml:3: local[2]: must not name a node twice"],
        ),
        (
            f"cluster_id: c\nnodes: [{CONTROLLER}, {{id: 3, roles: 'broker, controller', listen: 'h:1', "
            "controller_listen: '0.0.0.0:2'}]\nlocal: [2]\n",
            [
                "f.yaml:1: data_dir: required where controllers run in several processes: a voter must not forget its "
                "vote",
                "f.yaml:2: nodes[1].controller_listen: must be an address that the other processes can connect to",
            ],
        ),
        (BOTH + "noop_interval: 5\n", ["f.yaml:3: noop_interval: unknown key; did you mean `noop_interval_ms`?"]),
        (BOTH + "listeners: []\n", ["f.yaml:3: listeners: unknown key"]),
    ],
)
def test_faults_are_told_at_their_lines(text: str, expected: list[str]) -> None:
    assert faults(text) == expected


def test_nodes_on_different_addresses_may_use_the_same_port() -> None:
    nodes = f"{BROKER}, {CONTROLLER}, {{id: 3, roles: [broker], listen: '127.0.0.2:9092'}}"
    assert len(parse_backend(f"cluster_id: c\nnodes: [{nodes}]\n", "f.yaml", {}).nodes) == 3


def test_no_fault_repeats_a_value() -> None:
    text = (
        'cluster_id: ["${S}"]\nnodes: [{id: "${S}", roles: "${S}", listen: "${S}"}]\ndata_dir: "${S}"\nlocal: "${S}"\n'
    )
    found = faults(text, S="hunter2")
    assert len(found) == 5
    assert not [fault for fault in found if "hunter2" in fault]


@pytest.mark.parametrize(
    ("text", "kind"),
    [(BOTH, BackendConfig), ("cluster: {bootstrap_servers: 'h:1'}\nlogging: {level: debug}\n", SidecarConfig)],
)
def test_a_file_is_told_by_its_keys(tmp_path: Path, text: str, kind: type) -> None:
    path = tmp_path / "some.yaml"
    path.write_text(text)
    assert isinstance(load_any(path), kind)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("nodes: 5\n", "1: cluster_id: required"),
        ("state_wait_ms: 5\nadmin: {}\n", "1: cluster_id: required"),
        ("listeners: []\nadmin: {}\n", "1: cluster.bootstrap_servers: required"),
        ("[]\n", "1: must be a section with keys of its own, or left out"),
        ("", "1: cluster.bootstrap_servers: required"),
    ],
)
def test_a_faulty_file_is_told_what_its_kind_lacks(tmp_path: Path, text: str, fault: str) -> None:
    path = tmp_path / "some.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_any(path)
    assert str(caught.value.faults[0]) == f"{path}:{fault}"


def test_a_file_is_read_from_disk(tmp_path: Path) -> None:
    path = tmp_path / "backend.yaml"
    path.write_text(BOTH)
    assert load_backend(path) == parse_backend(BOTH, "f", {})


@pytest.mark.parametrize(
    ("security", "expected"),
    [
        ("{protocol: SSL}", ["ssl.cert_file: required with protocol SSL"]),
        (
            "{ssl: {cert_file: f}, client_auth: required}",
            [
                "ssl.cert_file: has no effect with protocol PLAINTEXT; set protocol SSL",
                "client_auth: has no effect with protocol PLAINTEXT; set protocol SSL",
            ],
        ),
        (
            "{protocol: SASL_SSL, ssl: {cert_file: f}, client_auth: optional}",
            ["ssl.ca_file: required with client_auth optional: who signed the certificates of clients"],
        ),
        (
            "{protocol: SSL, ssl: {cert_file: f, ca_file: f, verify_hostname: false}}",
            [
                "ssl.ca_file: has no effect with client_auth none; set client_auth, or leave it out",
                "ssl.verify_hostname: has no effect on a listener: clients show no host name; leave it out",
            ],
        ),
        (
            "{users_file: f, session_lifetime_ms: 5, delegation_token_secret_file: f}",
            [
                "users_file: has no effect with protocol PLAINTEXT; set protocol SASL_PLAINTEXT",
                "session_lifetime_ms: has no effect with protocol PLAINTEXT; set protocol SASL_PLAINTEXT",
                "delegation_token_secret_file: has no effect where clients have no name; set protocol SASL_PLAINTEXT",
            ],
        ),
        (
            "{protocol: SSL, ssl: {cert_file: f}, users_file: f}",
            ["users_file: has no effect with protocol SSL; set protocol SASL_SSL"],
        ),
        (
            "{super_users: ['User:a'], allow_everyone_if_no_acl_found: true}",
            [
                "super_users: has no effect without an authorizer; set authorizer standard",
                "allow_everyone_if_no_acl_found: has no effect without an authorizer; set authorizer standard",
            ],
        ),
        (
            "{authorizer: standard, super_users: [admin]}",
            ["super_users[0]: must be TYPE:NAME, for example User:admin"],
        ),
    ],
)
def test_what_security_would_ignore_is_refused(security: str, expected: list[str]) -> None:
    assert faults(BOTH + f"security: {security}\n") == [f"f.yaml:3: security.{fault}" for fault in expected]


@pytest.mark.parametrize("users", ['"User:a;User:CN=b,O=c"', '["User:a", "User:CN=b,O=c"]'])
def test_super_users_are_a_list_or_one_text_with_semicolons(users: str) -> None:
    text = BOTH + f"security: {{authorizer: standard, super_users: {users}}}\n"
    assert parse_backend(text, "f.yaml", {}).security.super_users == ("User:a", "User:CN=b,O=c")
