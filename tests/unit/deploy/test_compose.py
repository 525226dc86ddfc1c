"""The compose file agrees with the configurations that it mounts, with the image, and with the commands."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from click.testing import CliRunner

from config.load import load_backend, load_sidecar
from config.sidecar import SidecarConfig
from sidecar.net.drain import ANSWERS_TIMEOUT_S, CLOSE_TIMEOUT_S
from tidegate.cli.group import tidegate

DEPLOY = Path(__file__).parents[3] / "deploy"
COMPOSE = DEPLOY / "compose.yaml"
DEFAULT = {"backend", "sidecar", "prometheus"}
KAFKA = {"sidecar-kafka", "kafka-1", "kafka-2", "kafka-3"}
OURS = ("backend", "sidecar", "sidecar-kafka")
SIDECARS = ("sidecar", "sidecar-kafka")
ANSWERS_MS = 1000 * (ANSWERS_TIMEOUT_S + CLOSE_TIMEOUT_S)
"""What the sidecar takes after the drain at most."""


@pytest.fixture(scope="module")
def services() -> dict[str, dict[str, Any]]:
    return cast(dict[str, dict[str, Any]], yaml.safe_load(COMPOSE.read_text())["services"])


def mounted(service: dict[str, Any]) -> Path:
    """The file of ours that a service mounts; where it appears is what the command names."""
    (volume,) = service["volumes"]
    source, target, mode = volume.split(":")
    assert mode == "ro"
    assert target in " ".join(service["command"])
    path: Path = DEPLOY / source
    return path


def published(service: dict[str, Any]) -> dict[int, int]:
    """Ports inside the container to ports of the machine."""
    found: dict[int, int] = {}
    for mapping in service["ports"]:
        host, outside, inside = mapping.split(":")
        assert host == "127.0.0.1", "published on the loopback interface only"
        found.update(zip(ports(inside), ports(outside), strict=True))
    return found


def ports(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def test_without_a_profile_there_are_backend_sidecar_and_prometheus(services: dict[str, dict[str, Any]]) -> None:
    assert {name for name, service in services.items() if "profiles" not in service} == DEFAULT
    assert {name for name, service in services.items() if service.get("profiles") == ["kafka"]} == KAFKA


@pytest.mark.parametrize("name", OURS)
def test_mounted_configurations_are_valid(services: dict[str, dict[str, Any]], name: str) -> None:
    result = CliRunner().invoke(tidegate, ["check", str(mounted(services[name]))])
    assert (result.exit_code, result.stderr) == (0, "")


@pytest.mark.parametrize("name", OURS)
def test_commands_are_those_of_the_command_line(services: dict[str, dict[str, Any]], name: str) -> None:
    command, option, _ = services[name]["command"]
    assert command == ("backend" if name == "backend" else "run")
    result = CliRunner().invoke(tidegate, [command, "--help"])
    assert result.exit_code == 0
    assert f"{option} FILE" in result.stdout


def test_the_cluster_has_three_controllers_and_three_brokers_one_of_which_lags(
    services: dict[str, dict[str, Any]],
) -> None:
    nodes = load_backend(mounted(services["backend"])).nodes
    assert [len([node for node in nodes if role in node.roles]) for role in ("controller", "broker")] == [3, 3]
    assert [node.id for node in nodes if node.replay_delay_ms] == [3]


@pytest.mark.parametrize("name", SIDECARS)
def test_clients_of_the_machine_find_what_they_are_told(services: dict[str, dict[str, Any]], name: str) -> None:
    config = load_sidecar(mounted(services[name]))
    host, containers = config.listeners
    outside = published(services[name])
    assert host.advertised_host == "127.0.0.1"
    told = range(host.node_ports.first, host.node_ports.last + 1)
    assert {port: outside[port] for port in (host.bind.port, *told)} == {port: port for port in (host.bind.port, *told)}
    assert containers.advertised_host == name
    assert containers.bind.port not in outside
    assert set(outside) == {host.bind.port, *told, config.admin.bind.port}


def test_nothing_is_published_twice(services: dict[str, dict[str, Any]]) -> None:
    taken = [port for service in services.values() if "ports" in service for port in published(service).values()]
    assert len(taken) == len(set(taken))


def test_the_sidecar_looks_for_brokers_where_they_are(services: dict[str, dict[str, Any]]) -> None:
    backend = load_backend(mounted(services["backend"]))
    there = {(node.advertised_host, node.listen.port) for node in backend.nodes if node.listen is not None}
    assert asked(load_sidecar(mounted(services["sidecar"]))) == there == {("backend", port) for _, port in there}
    kafka = asked(load_sidecar(mounted(services["sidecar-kafka"])))
    told = {services[f"kafka-{n}"]["environment"]["KAFKA_ADVERTISED_LISTENERS"] for n in (1, 2, 3)}
    assert {f"PLAINTEXT://{host}:{port}" for host, port in kafka} == told


def asked(config: SidecarConfig) -> set[tuple[str, int]]:
    return {(server.host, server.port) for server in config.cluster.bootstrap_servers}


def test_clients_have_time_to_leave(services: dict[str, dict[str, Any]]) -> None:
    for name in SIDECARS:
        grace = re.fullmatch(r"(\d+)s", services[name]["stop_grace_period"])
        assert grace is not None
        assert load_sidecar(mounted(services[name])).limits.drain_timeout_ms + ANSWERS_MS < 1000 * int(grace[1])


def test_every_service_has_a_health_check(services: dict[str, dict[str, Any]]) -> None:
    """Ours have that of the image."""
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    assert "\nHEALTHCHECK " in dockerfile
    for name, service in services.items():
        assert ("healthcheck" in service) == (name not in OURS)
    found = re.search(r"TIDEGATE_HEALTH_URL=http://127\.0\.0\.1:(\d+)/readyz", dockerfile)
    assert found is not None
    for name in OURS:
        load = load_backend if name == "backend" else load_sidecar
        bind = load(mounted(services[name])).admin.bind
        assert bind is not None
        assert bind.port == int(found[1])


def test_whoever_is_waited_for_is_there(services: dict[str, dict[str, Any]]) -> None:
    waits = {name: service["depends_on"] for name, service in services.items() if "depends_on" in service}
    assert waits.keys() == {"sidecar", "prometheus", "sidecar-kafka"}
    for conditions in waits.values():
        assert conditions.keys() <= services.keys()
        assert all(condition == {"condition": "service_healthy"} for condition in conditions.values())


def test_prometheus_scrapes_both_and_the_sidecar_of_the_profile_when_it_is_there(
    services: dict[str, dict[str, Any]],
) -> None:
    jobs = yaml.safe_load(mounted(services["prometheus"]).read_text())["scrape_configs"]
    targets = {target for job in jobs for config in job.get("static_configs", ()) for target in config["targets"]}
    assert targets == {"sidecar:9464", "backend:9464"}
    ((found,),) = (job["dns_sd_configs"] for job in jobs if "dns_sd_configs" in job)
    assert (found["names"], found["port"]) == (["sidecar-kafka"], 9464)


def test_kafka_nodes_form_one_quorum(services: dict[str, dict[str, Any]]) -> None:
    nodes = [services[name]["environment"] for name in ("kafka-1", "kafka-2", "kafka-3")]
    assert [node["KAFKA_NODE_ID"] for node in nodes] == [1, 2, 3]
    (voters,) = {node["KAFKA_CONTROLLER_QUORUM_VOTERS"] for node in nodes}
    assert voters == ",".join(f"{n}@kafka-{n}:9093" for n in (1, 2, 3))
    assert len({node["CLUSTER_ID"] for node in nodes}) == 1


def compose_commands() -> Iterator[list[str]]:
    """What reads compose files on this machine."""
    if shutil.which("docker"):
        version = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
        if version.returncode == 0:
            yield ["docker", "compose"]
    if shutil.which("docker-compose"):
        yield ["docker-compose"]


@pytest.mark.skipif(not list(compose_commands()), reason="no Docker Compose here to read the file")
@pytest.mark.parametrize("profile", [(), ("--profile", "kafka")], ids=["default", "kafka"])
def test_compose_itself_accepts_the_file(profile: tuple[str, ...]) -> None:
    for command in compose_commands():
        environment = {**os.environ, "COMPOSE_FILE": str(COMPOSE)}
        result = subprocess.run(
            [*command, *profile, "config"], env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert result.returncode == 0, result.stderr
        wanted = DEFAULT | KAFKA if profile else DEFAULT
        assert wanted <= yaml.safe_load(result.stdout)["services"].keys()
