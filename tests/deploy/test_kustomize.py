"""What kustomize makes of deploy/: valid, of few rights, and one with its configuration."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path

import click
import kubernetes_validate
import pytest
import yaml
from tests.deploy.manifests import (
    DEPLOY,
    KUSTOMIZATIONS,
    Document,
    containers_of,
    of_kind,
    pod_of,
    rendered,
)

from numalign.cli.main import cli
from numalign.config.loader import load_settings
from numalign.config.settings import Service
from numalign_agent.cli.main import cli as agent_cli

pytestmark = pytest.mark.e2e

_ROOT = Path(__file__).parents[2]
_PYPROJECT = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))
_VERSION = _PYPROJECT["project"]["version"]
_SERVICES = {"admission", "topology", "cpu", "memory", "device"}
_CONTAINERS = {
    "base": _SERVICES,
    "overlays/all-in-one": {"services", "nri", "node"},
    "overlays/collector": _SERVICES | {"nri", "node", "collector"},
    "overlays/device-plugin-host": _SERVICES | {"nri", "node"},
    "overlays/nri": _SERVICES | {"nri", "node"},
    "overlays/observer": _SERVICES | {"nri", "node"},
    "overlays/scheduler": _SERVICES | {"nri", "node"},
}
_ROOTS = {
    "overlays/device-plugin-host": {"nri", "device"},
    "overlays/observer": {"nri", "device"},
}
"""Which containers run as root, where that is not the plugin of the runtime alone."""

every = pytest.mark.parametrize("name", KUSTOMIZATIONS)


def parsed(command: str, args: list[str]) -> click.Context:
    """The arguments of a container as its command understands them. Raises UsageError."""
    group = agent_cli if command == "numalign-agent" else cli
    found = group.get_command(click.Context(group), args[0])
    assert found is not None, args[0]
    return found.make_context(args[0], args[1:])


def config_of(name: str, tmp_path: Path) -> Path:
    """The configuration that the pod mounts, as a file."""
    (mounted,) = (
        volume["configMap"]["name"]
        for volume in pod_of(name)["spec"]["volumes"]
        if volume["name"] == "config"
    )
    (config,) = (
        document
        for document in of_kind(rendered(name), "ConfigMap")
        if document["metadata"]["name"] == mounted
    )
    path = tmp_path / "config.yaml"
    path.write_text(config["data"]["config.yaml"], encoding="utf-8")
    return path


@every
def test_every_object_is_valid(name: str) -> None:
    for document in rendered(name):
        kubernetes_validate.validate(document, "1.37", strict=True)


def test_a_misspelt_field_is_noticed() -> None:
    document: Document = yaml.safe_load("{apiVersion: v1, kind: Namespace, metadata: {title: x}}")

    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(document, "1.37", strict=True)


@pytest.mark.parametrize(
    "name", ["crds/noderesourcetopologies.yaml", "policies/own-node-only.yaml"]
)
def test_what_is_applied_by_itself_is_valid(name: str) -> None:
    for document in yaml.safe_load_all((DEPLOY / name).read_text(encoding="utf-8")):
        kubernetes_validate.validate(document, "1.37", strict=True)


@every
def test_everything_is_in_one_namespace_and_part_of_numalign(name: str) -> None:
    for document in (*rendered(name), pod_of(name)):
        labels = document["metadata"]["labels"]
        assert labels["app.kubernetes.io/part-of"] == "numalign", document["metadata"]
        if document.get("kind") in {"DaemonSet", "ConfigMap", "ServiceAccount"}:
            assert document["metadata"]["namespace"] == "numalign-system"
    assert pod_of(name)["metadata"]["labels"]["app.kubernetes.io/name"] == "numalign"


@every
def test_who_runs_and_who_is_root(name: str) -> None:
    pod, containers = pod_of(name)["spec"], containers_of(name)

    assert set(containers) == _CONTAINERS[name]
    assert pod["securityContext"]["runAsNonRoot"] is True
    roots = {
        each
        for each, container in containers.items()
        if container["securityContext"].get("runAsUser") == 0
    }
    assert roots == _ROOTS.get(name, {"nri"} & set(containers))
    for container in (*containers.values(), *pod["initContainers"]):
        context = container["securityContext"]
        assert context["readOnlyRootFilesystem"] is True
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"]["drop"] == ["ALL"]
        added = set(context["capabilities"].get("add", ()))
        assert added <= {"DAC_OVERRIDE", "CHOWN", "FOWNER"}
        assert not added or context["runAsUser"] == 0
        assert "limits" in container["resources"]
        assert "requests" in container["resources"]


@every
def test_who_reaches_the_api_server_and_control_groups(name: str) -> None:
    assert pod_of(name)["spec"]["automountServiceAccountToken"] is False
    for each, container in containers_of(name).items():
        mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
        assert mounts.keys().isdisjoint({"cgroups", "runtime"}) or each == "nri"
        assert "api-access" not in mounts or each in {"nri", "node"}
        assert each != "node" or mounts.keys() == {"api-access", "config", "sockets"}
        if "host" in mounts:
            assert mounts["host"] == {
                "name": "host",
                "mountPath": "/host",
                "readOnly": True,
                "mountPropagation": "HostToContainer",
            }


@every
def test_rights_name_what_they_are_for(name: str) -> None:
    rules = [rule for role in of_kind(rendered(name), "ClusterRole") for rule in role["rules"]]

    expected: set[tuple[str, ...]] = set()
    if name != "base":
        expected |= {("pods", "get"), ("pods/eviction", "create"), ("events", "create")}
        expected |= {("nodes", "get", "patch")}
    if name == "overlays/scheduler":
        expected |= {("noderesourcetopologies", "get", "create", "update")}
    assert {(rule["resources"][0], *rule["verbs"]) for rule in rules} == expected
    assert all(len(rule["resources"]) == 1 for rule in rules)


@every
def test_every_role_is_bound_to_the_one_account(name: str) -> None:
    documents = rendered(name)
    roles = {role["metadata"]["name"] for role in of_kind(documents, "ClusterRole")}
    bound = {
        binding["roleRef"]["name"]: binding["subjects"]
        for binding in of_kind(documents, "ClusterRoleBinding")
    }

    assert bound == {
        role: [{"kind": "ServiceAccount", "name": "numalign", "namespace": "numalign-system"}]
        for role in roles
    }


@every
def test_the_commands_take_their_arguments(name: str) -> None:
    for each, container in containers_of(name).items():
        if each == "collector":
            continue
        (command,) = container.get("command", ["numalign"])
        parameters = parsed(command, container["args"]).params
        assert parameters["config"] == Path("/etc/numalign/config.yaml")
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            if "exec" in container.get(probe, {}):
                program, *args = container[probe]["exec"]["command"]
                asked = parsed(program, args)
                served = "admission" if each == "services" else each
                assert asked.params == {"service": served, "live": probe != "readinessProbe"}
                assert asked.meta["numalign.timeout"] < container[probe]["timeoutSeconds"]


@every
def test_ports_named_metrics_are_where_metrics_are_served(name: str, tmp_path: Path) -> None:
    config = config_of(name, tmp_path)
    settings = load_settings(config, {}, is_root=False)
    plugin = yaml.safe_load(config.read_text(encoding="utf-8"))["numalign"].get("agent", {})
    served = {}
    for each in containers_of(name).keys() - {"collector", "nri", "node"}:
        address = (
            settings.metrics.address
            if each == "services"
            else settings.metrics.address_of(Service(each))
        )
        assert address is not None
        served[each] = address.port
    if plugin:
        for each in ("nri", "node"):
            served[each] = int(plugin[each]["address"].rpartition(":")[2])

    declared = {
        each: port["containerPort"]
        for each, container in containers_of(name).items()
        for port in container.get("ports", ())
        if port["name"] == "metrics"
    }

    assert declared == served
    assert max(Counter(declared.values()).values()) == 1


@every
def test_the_page_of_an_agent_is_asked_by_its_probes(name: str) -> None:
    for each in {"nri", "node"} & containers_of(name).keys():
        container = containers_of(name)[each]
        (port,) = (port["containerPort"] for port in container["ports"])
        asked = {
            probe: container[f"{probe}Probe"]["httpGet"] for probe in ("liveness", "readiness")
        }

        assert asked == {
            "liveness": {"path": "/healthz", "port": port},
            "readiness": {"path": "/readyz", "port": port},
        }


@pytest.mark.parametrize("name", [name for name in KUSTOMIZATIONS if name != "base"])
def test_the_topology_is_exported_where_a_scheduler_is_told(name: str) -> None:
    exports = "--export-topology" in containers_of(name)["node"]["args"]

    assert exports == (name == "overlays/scheduler")


@every
def test_every_volume_is_there_and_used(name: str) -> None:
    pod = pod_of(name)["spec"]
    mounted = {
        mount["name"]
        for container in (*pod["containers"], *pod["initContainers"])
        for mount in container["volumeMounts"]
    }

    assert {volume["name"] for volume in pod["volumes"]} == mounted


@every
def test_the_image_is_of_this_version(name: str) -> None:
    pod = pod_of(name)["spec"]
    images = {container["image"] for container in (*pod["containers"], *pod["initContainers"])}

    assert {image for image in images if image.startswith("numalign")} == {f"numalign:{_VERSION}"}
    assert not any("latest" in image or ":" not in image for image in images)


@every
def test_a_node_can_always_have_it(name: str) -> None:
    pod = pod_of(name)["spec"]

    assert pod["priorityClassName"] == "system-node-critical"
    assert pod["tolerations"] == [{"operator": "Exists"}]


def test_the_collector_scrapes_every_page() -> None:
    name = "overlays/collector"
    (config,) = (
        yaml.safe_load(document["data"]["collector.yaml"])
        for document in of_kind(rendered(name), "ConfigMap")
        if "collector.yaml" in document.get("data", {})
    )
    (job,) = config["receivers"]["prometheus"]["config"]["scrape_configs"]
    ports = {
        port["containerPort"]
        for container in containers_of(name).values()
        for port in container.get("ports", ())
    }

    assert set(job["static_configs"][0]["targets"]) == {f"127.0.0.1:{port}" for port in ports}
