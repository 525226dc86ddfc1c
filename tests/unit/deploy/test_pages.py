"""What the page on running a sidecar shows can be used as it stands."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.load import parse_sidecar

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "sidecar-beside-an-app.md"
DOCUMENTS: list[Any] = [
    document
    for block in re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    for document in yaml.safe_load_all(block)
]


def kind(name: str) -> Any:
    (found,) = (document for document in DOCUMENTS if document.get("kind") == name)
    return found


def pod() -> Any:
    return kind("Deployment")["spec"]["template"]["spec"]


def test_the_configuration_for_compose_is_valid_and_leads_to_its_service() -> None:
    (written,) = (document for document in DOCUMENTS if "cluster" in document)
    (services,) = (document["services"] for document in DOCUMENTS if "services" in document)
    (listener,) = parse_sidecar(yaml.safe_dump(written), "page").listeners
    assert listener.advertised_host in services
    told = services["application"]["environment"]["KAFKA_BOOTSTRAP_SERVERS"]
    assert told == f"{listener.advertised_host}:{listener.bind.port}"


def test_the_pod_asks_the_admin_listener_and_its_clients_the_bootstrap_port() -> None:
    config = parse_sidecar(kind("ConfigMap")["data"]["sidecar.yaml"], "page")
    (sidecar,), (application,) = pod()["initContainers"], pod()["containers"]
    ports = {port["name"]: port["containerPort"] for port in sidecar["ports"]}
    probes = {name: sidecar[name]["httpGet"] for name in ("startupProbe", "readinessProbe", "livenessProbe")}
    assert {name: probe["path"] for name, probe in probes.items()} == {
        "startupProbe": "/readyz",
        "readinessProbe": "/readyz",
        "livenessProbe": "/livez",
    }
    assert {ports[probe["port"]] for probe in probes.values()} == {config.admin.bind.port}
    assert config.admin.bind.is_wildcard
    assert application["env"][0]["value"] == str(config.listeners[0].bind)


def test_the_pod_gives_the_sidecar_time_to_drain() -> None:
    config = parse_sidecar(kind("ConfigMap")["data"]["sidecar.yaml"], "page")
    assert 1000 * pod()["terminationGracePeriodSeconds"] > config.limits.drain_timeout_ms


@pytest.mark.parametrize("page", [PAGE, ROOT / "docs" / "demo.md"], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)", page.read_text())
    assert targets
    assert [target for target in targets if not (page.parent / target).exists()] == []
