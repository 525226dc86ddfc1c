"""Files and arguments to a configuration: all faults at once, each at its line, in words for users."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from config.faults import ConfigError
from config.load import from_arguments, load_security, load_sidecar, masked, parse_sidecar
from config.sidecar import ApiOverride, Fleet, SidecarConfig
from config.values import HostPort, PortRange

CLUSTER = 'cluster: {bootstrap_servers: ["kafka:9092"]}\n'


def parse(text: str, **environment: str) -> SidecarConfig:
    return parse_sidecar(text, "f.yaml", environment)


def faults(text: str, **environment: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(text, **environment)
    return [str(fault) for fault in caught.value.faults]


def test_the_shortest_file_has_all_defaults() -> None:
    config = parse(CLUSTER)
    assert config.cluster.bootstrap_servers == (HostPort("kafka", 9092),)
    (listener,) = config.listeners
    assert listener.bind == HostPort("127.0.0.1", 19092)
    assert listener.node_ports == PortRange(19101, 19199)
    assert config.consistency.wait_timeout_ms == 3000
    assert config.state_file is None


def test_every_kind_of_value_is_read() -> None:
    config = parse(
        """
cluster:
  bootstrap_servers: ${SERVERS}
  security:
    protocol: SASL_PLAINTEXT
    sasl: {mechanism: SCRAM-SHA-512, username: "${USER}", password_file: /run/secret}
  head_source: broker_max
  probe: {min_interval_ms: "${MIN}"}
listeners:
  - {name: a, bind: "[::1]:1000", advertised_host: "::1", node_ports: 1001-1010, advertised_node_ports: 2001-2010}
  - {name: b, bind: "127.0.0.1:1000", node_ports: 1001-1010}
consistency:
  level: linearizable
  apis: {describe_acls: {level: eventual, depth: effective}}
state_file: /var/lib/tidegate/ports
""",
        SERVERS="kafka-1:9092, [fe80::1]:9093",
        USER="12345",
        MIN="5",
    )
    assert config.cluster.bootstrap_servers == (HostPort("kafka-1", 9092), HostPort("fe80::1", 9093))
    assert config.cluster.security.sasl.username == "12345"
    assert config.cluster.probe.min_interval_ms == 5
    assert config.listeners[0].advertised_node_ports == PortRange(2001, 2010)
    assert config.consistency.apis == {"describe_acls": ApiOverride(level="eventual", depth="effective")}
    assert config.state_file == Path("/var/lib/tidegate/ports")


def test_a_configuration_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        setattr(parse(CLUSTER).limits, "connections", 5)  # noqa: B010


def test_all_faults_come_at_once_sorted_by_line() -> None:
    text = """
cluster:
  bootstrap_server: x
  security: {protocol: TLS}
  head_source: guess
limits: {connections: 0, connectoins: 5}
consistency: {wait_timeout_ms: soon}
admin: {bind: "${ADMIN}"}
logging: {level: info, level: debug}
wait_timeout_ms: 5
"""
    assert faults(text) == [
        "f.yaml:2: cluster.bootstrap_servers: required",
        "f.yaml:3: cluster.bootstrap_server: unknown key; did you mean `bootstrap_servers`?",
        "f.yaml:4: cluster.security.protocol: must be PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL",
        "f.yaml:5: cluster.head_source: must be describe_quorum or broker_max",
        "f.yaml:6: limits.connections: must be between 1 and 1000000",
        "f.yaml:6: limits.connectoins: unknown key; did you mean `connections`?",
        "f.yaml:7: consistency.wait_timeout_ms: must be a whole number",
        "f.yaml:8: admin.bind: environment variable ADMIN is not set",
        "f.yaml:9: logging.level: duplicate key; it is already on line 9",
        "f.yaml:10: wait_timeout_ms: unknown key; did you mean `consistency.wait_timeout_ms`?",
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "f.yaml:1: cluster.bootstrap_servers: required"),
        ("5", "f.yaml:1: must be a section with keys of its own, or left out"),
        (CLUSTER + "limits:\n", "f.yaml:2: limits: must be a section with keys of its own, or left out"),
        (CLUSTER + "listeners: {}\n", "f.yaml:2: listeners: must be a list"),
        (CLUSTER + "listeners: []\n", "f.yaml:2: listeners: must have at least one entry"),
        ("cluster: {bootstrap_servers: []}\n", "f.yaml:1: cluster.bootstrap_servers: must have at least one entry"),
        (
            f"cluster: {{bootstrap_servers: [{'h, ' * 101}]}}",
            "f.yaml:1: cluster.bootstrap_servers: must have at most 100 entries",
        ),
        ("cluster: {bootstrap_servers: [h:1, [h:2]]}", "f.yaml:1: cluster.bootstrap_servers[1]: must be text"),
        ("cluster: {bootstrap_servers: 9092}\n", "f.yaml:1: cluster.bootstrap_servers: must be a list"),
        (
            CLUSTER + "consistency: {apis: []}\n",
            "f.yaml:2: consistency.apis: must be a section with keys of its own, or left out",
        ),
        (
            CLUSTER + "consistency: {apis: {describe_acl: {}}}\n",
            "f.yaml:2: consistency.apis.describe_acl: unknown key; did you mean `describe_acls`?",
        ),
        (CLUSTER + "consistency: {apis: {produce: {}}}\n", "f.yaml:2: consistency.apis.produce: unknown key"),
        (CLUSTER + "logging: {format: JSON}\n", "f.yaml:2: logging.format: must be text or json"),
        (CLUSTER + "listeners:\n  - bind: 9092\n", "f.yaml:3: listeners[0].bind: must be HOST:PORT"),
        (
            CLUSTER + "listeners:\n  - node_ports: 9092\n",
            "f.yaml:3: listeners[0].node_ports: must be FIRST-LAST, for example 19101-19199",
        ),
        (CLUSTER + "state_file: 5\n", "f.yaml:2: state_file: must be text; put it in quotes"),
        (CLUSTER + 'state_file: ""\n', "f.yaml:2: state_file: must not be empty"),
        (CLUSTER + "? [x]\n", "f.yaml:2: keys must be plain words"),
        (
            "cluster: {bootstrap_servers: 'a:1', security: {sasl: {password: hunter2}}}\n",
            "f.yaml:1: cluster.security.sasl.password: unknown key; secrets are read from files: use `password_file`",
        ),
    ],
)
def test_a_single_fault_is_the_only_one(text: str, fault: str) -> None:
    assert faults(text) == [fault]


@pytest.mark.parametrize(
    ("security", "expected"),
    [
        ("{protocol: SASL_PLAINTEXT}", ["sasl.mechanism: required with protocol SASL_PLAINTEXT"]),
        (
            "{protocol: SASL_PLAINTEXT, sasl: {mechanism: PLAIN}}",
            ["sasl.username: required with mechanism PLAIN", "sasl.password_file: required with mechanism PLAIN"],
        ),
        (
            "{sasl: {mechanism: PLAIN, username: u}}",
            [
                "sasl.mechanism: has no effect with protocol PLAINTEXT; set protocol SASL_PLAINTEXT",
                "sasl.username: has no effect with protocol PLAINTEXT; set protocol SASL_PLAINTEXT",
            ],
        ),
        (
            "{protocol: SASL_PLAINTEXT, sasl: {mechanism: OAUTHBEARER, username: u, token_file: t}}",
            ["sasl.username: has no effect with mechanism OAUTHBEARER; leave it out"],
        ),
        (
            "{protocol: SASL_SSL, sasl: {mechanism: OAUTHBEARER}}",
            ["sasl.token_file: required with mechanism OAUTHBEARER"],
        ),
        (
            "{protocol: SSL, sasl: {username: u}}",
            ["sasl.username: has no effect with protocol SSL; set protocol SASL_SSL"],
        ),
        (
            "{ssl: {ca_file: f, verify_hostname: false}}",
            [
                "ssl.ca_file: has no effect with protocol PLAINTEXT; set protocol SSL",
                "ssl.verify_hostname: has no effect with protocol PLAINTEXT; set protocol SSL",
            ],
        ),
        (
            "{protocol: SSL, ssl: {key_file: f}}",
            ["ssl.key_file: has no effect without cert_file; name the certificate too"],
        ),
    ],
)
def test_the_parts_of_a_login_must_agree(security: str, expected: list[str]) -> None:
    text = f"cluster: {{bootstrap_servers: 'a:1', security: {security}}}\n"
    assert faults(text) == [f"f.yaml:1: cluster.security.{fault}" for fault in expected]


@pytest.mark.row("5.5")
@pytest.mark.parametrize(
    ("security", "expected"),
    [
        (
            "{protocol: SSL}",
            ["ssl.cert_file: required with protocol SSL: TLS cannot pass through, for addresses are rewritten"],
        ),
        (
            "{ssl: {cert_file: f}, client_auth: required}",
            [
                "ssl.cert_file: has no effect with protocol PLAINTEXT; set protocol SSL",
                "client_auth: has no effect with protocol PLAINTEXT; set protocol SSL",
            ],
        ),
        (
            "{protocol: SSL, ssl: {cert_file: f}, client_auth: optional}",
            ["ssl.ca_file: required with client_auth optional: who signed the certificates of clients"],
        ),
        (
            "{protocol: SASL_SSL, ssl: {cert_file: f, ca_file: f, verify_hostname: false}}",
            [
                "ssl.ca_file: has no effect with client_auth none; set client_auth, or leave it out",
                "ssl.verify_hostname: has no effect on a listener: clients show no host name; leave it out",
            ],
        ),
    ],
)
def test_tls_of_clients_ends_at_the_listener(security: str, expected: list[str]) -> None:
    text = f"{CLUSTER}listeners: [{{security: {security}}}]\n"
    assert faults(text) == [f"f.yaml:2: listeners[0].security.{fault}" for fault in expected]


@pytest.mark.row("5.5")
def test_a_certificate_of_ours_is_not_lent_to_clients_unasked() -> None:
    text = "cluster: {bootstrap_servers: 'a:1', security: {protocol: SSL, ssl: {cert_file: f}}}\n"
    assert faults(text) == [
        "f.yaml:1: listeners[0].identity: must be sidecar: TLS ends here, so the certificate of a client cannot pass "
        "through, and brokers would take each client for the sidecar"
    ]
    parse(text.replace("protocol: SSL", "protocol: SASL_SSL, sasl: {mechanism: OAUTHBEARER, token_file: f}"))


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        (
            "listeners: [{bind: 'h:150', node_ports: 100-200}]",
            "listeners[0].node_ports: must not contain the port of bind (150)",
        ),
        (
            "listeners: [{node_ports: 1-5, advertised_node_ports: 1-6}]",
            "listeners[0].advertised_node_ports: must be as long as node_ports: 5 ports, not 6",
        ),
        ("listeners: [{}, {bind: 'h:1', node_ports: 2-3}]", "listeners[1].name: must be unique among the listeners"),
        ("listeners: [{}, {name: b, node_ports: 2-3}]", "listeners[1].bind: has the port of listener `default`"),
        (
            "listeners: [{}, {name: b, bind: '0.0.0.0:19105', node_ports: 2-3}]",
            "listeners[1].bind: has a node port of listener `default` (19101-19199)",
        ),
        (
            "listeners: [{}, {name: b, bind: '0.0.0.0:1', node_ports: 19000-19099}]",
            "listeners[1].node_ports: must not contain the port of listener `default`",
        ),
        (
            "listeners: [{}, {name: b, bind: '0.0.0.0:1', node_ports: 19199-19200}]",
            "listeners[1].node_ports: must not overlap those of listener `default` (19101-19199)",
        ),
        ("admin: {bind: '127.0.0.1:19092'}", "admin.bind: has the port of listener `default`"),
        ("admin: {bind: '0.0.0.0:19101'}", "listeners[0].node_ports: must not contain the port of admin.bind (19101)"),
        (
            "cluster: {bootstrap_servers: ['kafka:9092', '127.0.0.1:19150']}",
            "cluster.bootstrap_servers[1]: is a port of this sidecar; name a broker",
        ),
        (
            "cluster: {bootstrap_servers: ['127.0.0.1:9464']}",
            "cluster.bootstrap_servers[0]: is a port of this sidecar; name a broker",
        ),
        (
            "cluster: {bootstrap_servers: 'a:1', probe: {idle_interval_ms: 10, min_interval_ms: 11}}",
            "cluster.probe.min_interval_ms: must not be above idle_interval_ms (10)",
        ),
    ],
)
def test_keys_must_agree(rest: str, expected: str) -> None:
    text = rest if rest.startswith("cluster") else CLUSTER + rest
    assert [fault.partition(": ")[2] for fault in faults(text)] == [expected]


def test_a_listener_that_collides_with_many_is_told_of_one() -> None:
    listeners = ", ".join(f"{{name: l{index}, bind: 'h:{index + 1}', node_ports: 100-200}}" for index in range(4))
    assert faults(f"{CLUSTER}listeners: [{listeners}]\n") == [
        f"f.yaml:2: listeners[{index}].node_ports: must not overlap those of listener `l0` (100-200)"
        for index in (1, 2, 3)
    ]


def test_listeners_on_different_addresses_may_use_the_same_ports() -> None:
    config = parse(
        CLUSTER + "listeners: [{name: a}, {name: b, bind: '10.0.0.1:19092'}]\nadmin: {bind: '10.0.0.2:19101'}"
    )
    assert [listener.name for listener in config.listeners] == ["a", "b"]


def test_no_fault_repeats_a_value() -> None:
    secret = "hunter2"
    text = """
cluster:
  bootstrap_servers: ["${S}", "http://${S}"]
  head_source: "${S}"
  security: {protocol: "${S}", sasl: {mechanism: "${S}"}}
listeners: [{bind: "${S}", node_ports: "${S}", advertised_host: "${S} ", identity: "${S}"}]
consistency: {wait_timeout_ms: "${S}", serialize_writes: "${S}", apis: "${S}"}
limits: "${S}"
fleet: {url: "redis://u:${S}@h"}
"""
    found = faults(text, S=secret)
    assert len(found) == 14
    assert not [fault for fault in found if secret in fault]


def test_a_file_is_named_as_given(tmp_path: Path) -> None:
    path = tmp_path / "sidecar.yaml"
    path.write_text("\ufeff" + CLUSTER + "limit: {}\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_sidecar(path)
    assert str(caught.value) == f"{path}:2: limit: unknown key; did you mean `limits`?"


def test_the_process_environment_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEGATE_TEST_SERVER", "kafka:1")
    path = tmp_path / "sidecar.yaml"
    path.write_text("cluster: {bootstrap_servers: ['${TIDEGATE_TEST_SERVER}']}\n")
    assert load_sidecar(path).cluster.bootstrap_servers == (HostPort("kafka", 1),)


SECTION = "{protocol: SASL_PLAINTEXT, sasl: {mechanism: PLAIN, username: alice, password_file: /p}}"


@pytest.mark.parametrize("shape", ["cluster: {{security: {}}}", "security: {}", "{}"])
def test_a_command_config_may_have_three_shapes(tmp_path: Path, shape: str) -> None:
    path = tmp_path / "command.yaml"
    path.write_text(shape.format(SECTION))
    assert load_security(path).sasl.username == "alice"
    path.write_text(shape.format("{protocol: SASL_TLS,\nsasl: {mechanism: PLAIN,\nusernam: alice, password_file: /p}}"))
    with pytest.raises(ConfigError) as caught:
        load_security(path)
    prefix = shape.replace("{}", "x").replace("{", "").replace("}", "").replace(": ", ".").removesuffix("x")
    assert [str(fault) for fault in caught.value.faults] == [
        f"{path}:1: {prefix}protocol: must be PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL",
        f"{path}:3: {prefix}sasl.usernam: unknown key; did you mean `username`?",
    ]


@pytest.mark.parametrize("text", ["", "cluster: {}", "security: {}", "{}"])
def test_an_empty_command_config_means_plaintext(tmp_path: Path, text: str) -> None:
    path = tmp_path / "command.yaml"
    path.write_text(text)
    assert load_security(path).protocol == "PLAINTEXT"


def test_arguments_make_the_same_configuration_as_a_file(tmp_path: Path) -> None:
    path = tmp_path / "command.yaml"
    path.write_text(SECTION)
    made = from_arguments(
        bootstrap="kafka-1:9092,kafka-2:9092",
        listen="[::1]:29092",
        node_ports="29101-29199",
        admin="127.0.0.1:9465",
        command_config=path,
    )
    assert made == parse(
        f"""
cluster: {{bootstrap_servers: ["kafka-1:9092", "kafka-2:9092"], security: {SECTION}}}
listeners: [{{bind: "[::1]:29092", advertised_host: "::1", node_ports: 29101-29199}}]
admin: {{bind: "127.0.0.1:9465"}}
"""
    )
    assert from_arguments(bootstrap="kafka:9092") == parse(CLUSTER)


def test_listening_everywhere_advertises_the_default_host() -> None:
    (listener,) = from_arguments(bootstrap="kafka:9092", listen="0.0.0.0:29092").listeners
    assert listener.advertised_host == "127.0.0.1"


def test_faults_of_arguments_name_the_option(tmp_path: Path) -> None:
    path = tmp_path / "command.yaml"
    path.write_text("protocol: TLS\n")
    with pytest.raises(ConfigError) as caught:
        from_arguments(bootstrap="kafka,:1", listen="x", node_ports="5", admin="0", command_config=path)
    assert [str(fault) for fault in caught.value.faults] == [
        "--bootstrap: must be HOST:PORT",
        "--bootstrap: must be HOST:PORT",
        "--listen: must be HOST:PORT",
        "--node-ports: must be FIRST-LAST, for example 19101-19199",
        "--admin: must be HOST:PORT",
        f"{path}:1: protocol: must be PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL",
    ]
    with pytest.raises(ConfigError, match=r"^--node-ports: must not contain the port of bind \(100\)$"):
        from_arguments(bootstrap="kafka:1", listen="h:100", node_ports="100-101")


def test_the_shown_configuration_is_complete_and_keeps_logins_out() -> None:
    config = parse(CLUSTER)
    assert masked(config) == config.model_dump(mode="json")
    secret = config.model_copy(update={"fleet": Fleet(url="redis://user:hunter2@store:6379/0")})
    assert masked(secret)["fleet"] == {"url": "redis://***@store:6379/0"}
