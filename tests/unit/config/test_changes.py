"""What a running sidecar can take over of a new configuration, and what needs a restart."""

from typing import Any

import pytest

from config.changes import Entangled, changes, is_live
from config.keys import ANY, catalogue
from config.sidecar import SidecarConfig

pytestmark = pytest.mark.row("6.2")

BASE: dict[str, Any] = {"cluster": {"bootstrap_servers": ["a:1"]}}


def config(**sections: Any) -> SidecarConfig:
    return SidecarConfig.model_validate({**BASE, **sections})


def test_a_configuration_survives_being_compared() -> None:
    full = config(
        listeners=[{"bind": "[::1]:7", "node_ports": "8-9", "advertised_node_ports": "18-19"}],
        consistency={"apis": {"metadata": {"level": "eventual"}}},
        limits={"sessions": 5},
        state_file="/state",
    )
    outcome = changes(full, full)
    assert (outcome.config, outcome.live, outcome.restart) == (full, (), ())


def test_live_keys_are_taken_over_and_the_others_named() -> None:
    former = config(consistency={"level": "session", "scope": "service"}, admin={"bind": "h:5"})
    new = config(
        cluster={"bootstrap_servers": ["a:1", "b:2"], "probe": {"timeout_ms": 50}},
        consistency={"level": "eventual", "scope": "connection", "apis": {"metadata": {"depth": "effective"}}},
        limits={"connections": 3},
        logging={"level": "debug"},
        admin={"bind": "h:6", "token_file": "/t"},
    )
    outcome = changes(former, new)
    assert set(outcome.live) == {
        "cluster.bootstrap_servers",
        "consistency.level",
        "consistency.apis",
        "limits.connections",
        "logging.level",
        "admin.token_file",
    }
    assert set(outcome.restart) == {"cluster.probe.timeout_ms", "consistency.scope", "admin.bind"}
    in_force = outcome.config
    assert (in_force.limits, in_force.logging) == (new.limits, new.logging)
    assert in_force.cluster.bootstrap_servers == new.cluster.bootstrap_servers
    assert (in_force.consistency.level, in_force.consistency.scope) == ("eventual", "service")
    assert in_force.consistency.apis == new.consistency.apis
    assert in_force.cluster.probe == former.cluster.probe
    assert str(in_force.admin.bind) == "h:5"


def test_certificates_of_listeners_are_live_and_their_number_is_not() -> None:
    secured = {"protocol": "SSL", "ssl": {"cert_file": "/c"}}
    former = config(listeners=[{"security": secured}])
    new = config(listeners=[{"security": {**secured, "ssl": {"cert_file": "/d", "key_file": "/k"}}}])
    outcome = changes(former, new)
    assert outcome.live == ("listeners[0].security.ssl.cert_file", "listeners[0].security.ssl.key_file")
    assert outcome.config == new
    two = config(listeners=[{"security": secured}, {"name": "b", "bind": "h:1", "node_ports": "2-3"}])
    outcome = changes(former, two)
    assert (outcome.config, outcome.live, outcome.restart) == (former, (), ("listeners",))


def test_what_only_makes_sense_as_a_whole_is_refused() -> None:
    new = config(cluster={"bootstrap_servers": ["a:1"], "security": {"protocol": "SSL", "ssl": {"ca_file": "/ca"}}})
    with pytest.raises(Entangled, match=r"cluster\.security\.ssl\.ca_file: has no effect with protocol PLAINTEXT"):
        changes(config(), new)


def test_every_live_pattern_is_a_key() -> None:
    live = {
        pattern
        for pattern, key in catalogue(SidecarConfig).items()
        if is_live(tuple(0 if part == ANY else part for part in pattern))
    }
    assert ("cluster", "security", "sasl", "token_file") in live
    assert ("limits", "sessions") in live
    assert ("consistency", "scope") not in live
    assert len({pattern[:2] for pattern in live if pattern[0] == "consistency"}) == 6
