"""Metrics: exact names and types, closed label sets, and numbers that are those of the counters."""

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from codec.api_keys import ApiKey
from sidecar.core.actions import Probe, ProbeHead
from sidecar.core.bounds import Why
from sidecar.core.events import Address, ClusterDescribed, HeadAnswered, ProbeAnswered, ProbeOpened
from sidecar.core.gate import GateSettings
from sidecar.core.head import QuorumAnswer, Voter
from sidecar.core.ids import NodeId
from sidecar.core.passing import Passing
from sidecar.core.sidecar import Sidecar
from sidecar.net.counters import BUCKETS, CAUSES, DECISIONS, OUTCOMES, Counters, Histogram
from sidecar.net.metrics import Metrics, SidecarCollector

ROOT = Path(__file__).parents[4]
NODE = NodeId(1)

TYPES = {
    "broker_visible_offset": "gauge",
    "broker_effective_offset": "gauge",
    "broker_lag_records": "gauge",
    "broker_lag_seconds": "gauge",
    "broker_in_flight": "gauge",
    "broker_up": "gauge",
    "broker_probe_age_seconds": "gauge",
    "head_offset": "gauge",
    "head_leader_epoch": "gauge",
    "head_age_seconds": "gauge",
    "held_requests": "gauge",
    "sessions": "gauge",
    "client_connections": "gauge",
    "broker_connections": "gauge",
    "guarantee": "gauge",
    "brokers_without_port": "gauge",
    "build_info": "gauge",
    "requests": "counter",
    "holds": "counter",
    "stale_reads_prevented": "counter",
    "probe_failures": "counter",
    "connections_opened": "counter",
    "connections_closed": "counter",
    "bytes": "counter",
    "internal_errors": "counter",
    "request_seconds": "histogram",
    "held_seconds": "histogram",
    "upstream_seconds": "histogram",
    "sidecar_seconds": "histogram",
    "head_of_line_seconds": "histogram",
}


def known_sidecar() -> Sidecar:
    """A core with one broker at offset 40 and the head at 41, by the clock 1000 ms."""
    core = Sidecar(GateSettings())
    core.handle(ClusterDescribed("c", 1, (Address(NODE, "127.0.0.1", 9092),)), 0)
    (probe,) = [a for a in core.handle(ProbeOpened(NODE), 0) if isinstance(a, Probe)]
    actions = core.handle(ProbeAnswered(NODE, probe.asked, 40), 1000)
    (ask,) = [a for a in actions if isinstance(a, ProbeHead)]
    voter = Voter(replica_id=9, last_fetch_ms=5, last_caught_up_ms=5)
    answer = QuorumAnswer(leader_id=9, leader_epoch=3, high_watermark=42, voters=(voter,))
    core.handle(HeadAnswered(NODE, ask.asked, answer), 1000)
    return core


def text_of(core: Sidecar, counters: Counters, now_ms: float = 1500) -> str:
    return Metrics(SidecarCollector(core, counters, now_ms=lambda: now_ms, portless=lambda: 0)).text().decode()


def samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            at = sample.name, frozenset(sample.labels.items())
            assert at not in found, f"{at} is there twice"
            found[at] = sample.value
    return found


def value(text: str, name: str, **labels: str) -> float:
    return samples(text)[f"tidegate_{name}", frozenset(labels.items())]


def test_every_metric_has_its_name_and_type() -> None:
    families = text_string_to_metric_families(text_of(Sidecar(GateSettings()), Counters()))
    ours = {f.name.removeprefix("tidegate_"): f.type for f in families if f.name.startswith("tidegate_")}
    assert ours == TYPES


def test_process_metrics_are_there_too() -> None:
    text = text_of(Sidecar(GateSettings()), Counters())
    assert "process_cpu_seconds_total" in text
    assert "python_gc_collections_total" in text


def test_what_is_known_of_the_cluster() -> None:
    text = text_of(known_sidecar(), Counters())
    expected = {
        "broker_visible_offset": 40,
        "broker_lag_records": 1,
        "broker_lag_seconds": 0.5,
        "broker_in_flight": 0,
        "broker_up": 1,
        "broker_probe_age_seconds": 0.5,
    }
    assert {name: value(text, name, node_id="1") for name in expected} == expected
    assert (value(text, "head_offset"), value(text, "head_leader_epoch")) == (41, 3)
    assert value(text, "head_age_seconds") == 0.5
    assert value(text, "guarantee") == 1
    assert 'tidegate_broker_effective_offset{node_id="1"}' not in text


def test_what_is_not_known_is_not_there() -> None:
    text = text_of(Sidecar(GateSettings()), Counters())
    assert not re.search(r"^tidegate_(head_(offset|leader|age)|broker_)\w*[ {]", text, re.MULTILINE)
    assert value(text, "guarantee") == 0


@pytest.mark.row("6.6")
def test_counters_are_shown_under_their_labels() -> None:
    counters = Counters()
    counters.requests[ApiKey.METADATA, "hold"] = 2
    counters.holds[ApiKey.METADATA, Why.OWN_WRITE.value, "proven"] = 3
    counters.prevented[ApiKey.METADATA] = 4
    counters.probe_failures[1, "timeout"] = 5
    counters.closed["client", "tls_hello"] = 6
    counters.bytes["client", "in"] = 7
    counters.broker_connections[1] = 8
    counters.client_connections = 9
    counters.opened["client"] = 10
    text = text_of(Sidecar(GateSettings()), counters)
    assert value(text, "requests_total", api="Metadata", decision="hold") == 2
    assert value(text, "holds_total", api="Metadata", why="own write", outcome="proven") == 3
    assert value(text, "stale_reads_prevented_total", api="Metadata") == 4
    assert value(text, "probe_failures_total", node_id="1", cause="timeout") == 5
    assert value(text, "connections_closed_total", side="client", cause="tls_hello") == 6
    assert value(text, "bytes_total", side="client", direction="in") == 7
    assert value(text, "broker_connections", node_id="1") == 8
    assert value(text, "client_connections") == 9
    assert value(text, "connections_opened_total", side="client") == 10
    assert value(text, "connections_opened_total", side="broker") == 0


def test_a_histogram_is_cumulative() -> None:
    counters = Counters()
    for seconds in (0.0005, 0.003, 0.003, 60):
        counters.request_seconds[ApiKey.FETCH].observe(seconds)
    text = text_of(Sidecar(GateSettings()), counters)
    at = {le: value(text, "request_seconds_bucket", api="Fetch", le=le) for le in ("0.0005", "0.0025", "0.005", "+Inf")}
    assert at == {"0.0005": 1, "0.0025": 1, "0.005": 3, "+Inf": 4}
    assert value(text, "request_seconds_count", api="Fetch") == 4
    assert value(text, "request_seconds_sum", api="Fetch") == pytest.approx(60.0065)


def test_what_passed_was_all_with_the_broker() -> None:
    counters = Counters()
    for seconds in (0.0005, 0.003):
        counters.passed_seconds[ApiKey.FETCH].observe(seconds)
    counters.request_seconds[ApiKey.FETCH].observe(2)
    counters.upstream_seconds[ApiKey.FETCH].observe(1.5)
    counters.sidecar_seconds[ApiKey.FETCH].observe(0.5)
    text = text_of(Sidecar(GateSettings()), counters)
    parts = ("request", "upstream", "sidecar")
    assert {value(text, f"{part}_seconds_count", api="Fetch") for part in parts} == {3}
    sums = [value(text, f"{part}_seconds_sum", api="Fetch") for part in parts]
    assert sums == pytest.approx([2.0035, 1.5035, 0.5])
    assert value(text, "sidecar_seconds_bucket", api="Fetch", le="0.0005") == 2


def test_unknown_api_keys_share_one_name() -> None:
    counters = Counters()
    for api_key in (20_001, 20_002):
        counters.requests[api_key, "plain"] = 1
        counters.request_seconds[api_key].observe(1)
    text = text_of(Sidecar(GateSettings()), counters)
    assert value(text, "requests_total", api="Unknown", decision="plain") == 2
    assert value(text, "request_seconds_count", api="Unknown") == 2


def test_words_outside_the_sets_become_other() -> None:
    counters = Counters()
    counters.requests[ApiKey.FETCH, "whim"] = 1
    counters.closed["client", "whim"] = 1
    counters.closed["client", "fancy"] = 1
    text = text_of(Sidecar(GateSettings()), counters)
    assert "whim" not in text
    assert value(text, "requests_total", api="Fetch", decision="other") == 1
    assert value(text, "connections_closed_total", side="client", cause="other") == 2


def words(pattern: str) -> set[str]:
    """What the source of the sidecar gives as a cause, decision or outcome."""
    sources = [path.read_text() for path in (ROOT / "sidecar").rglob("*.py")]
    return {word for source in sources for word in re.findall(pattern, source)}


def test_every_cause_in_the_source_is_in_the_set() -> None:
    found = words(r'(?:\bclose|_finish|_reject|BrokerUnavailable|CloseClient)\((?:[\w.]+, )?"(\w+)"')
    assert {"oversized", "wait_timeout", "resolve", "drained", "protocol"} <= found
    assert found <= CAUSES


def test_every_decision_in_the_source_is_in_the_set() -> None:
    found = words(r'(?:Decided\(exchange, |_send\(exchange, [\w.]+, )"(\w+)"')
    found |= {passing.value for passing in (Passing.PLAIN, Passing.SILENT, Passing.LOCAL)}
    assert {"hold", "write", "unproven"} <= found
    assert found <= DECISIONS


def test_every_outcome_in_the_source_is_in_the_set() -> None:
    found = words(r'_release\(\w+, "(\w+)"')
    assert {"proven", "client_left"} <= found
    assert found | {"error", "freshest", "stale", "close"} == OUTCOMES


def test_histograms_add_up() -> None:
    one, other = Histogram(), Histogram()
    one.observe(0.001)
    other.observe(0.001)
    other.observe(99)
    one.add(other)
    assert one.cumulative()[0] == 0
    assert one.cumulative()[1] == 2
    assert one.cumulative()[-1] == 3
    assert len(one.cumulative()) == len(BUCKETS) + 1
    assert one.total == pytest.approx(99.002)
