"""The chart: the objects of kustomize, for values that are checked."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from tests.deploy.alike import by_name
from tests.deploy.helm import CHART, OVERLAYS, charted, overlay, refusal, run_helm
from tests.deploy.manifests import KUSTOMIZATIONS, OPERATOR, of_kind, rendered

from numalign.config.loader import load_settings

pytestmark = pytest.mark.e2e

_PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
_OPERATOR_OVERLAY = "prometheus-operator"


def kustomization_of(name: str) -> str:
    """Which kustomization an overlay of the chart corresponds to."""
    return name if name == "base" else f"overlays/{name}"


def test_every_kustomization_has_values() -> None:
    assert {kustomization_of(name) for name in OVERLAYS if name != _OPERATOR_OVERLAY} == set(
        KUSTOMIZATIONS
    )


@pytest.mark.parametrize("name", [name for name in OVERLAYS if name != _OPERATOR_OVERLAY])
def test_the_objects_are_those_of_kustomize(name: str) -> None:
    chart, kustomize = by_name(overlay(name)), by_name(rendered(kustomization_of(name)))

    assert chart.keys() == kustomize.keys()
    for key, expected in kustomize.items():
        assert chart[key] == expected, key


def test_the_operators_objects_are_those_of_kustomize() -> None:
    kustomize = by_name((*rendered("overlays/nri"), *rendered(OPERATOR)))

    assert by_name(overlay(_OPERATOR_OVERLAY)) == kustomize


def test_no_values_are_the_overlay_nri() -> None:
    assert charted() == overlay("nri")


@pytest.mark.parametrize("name", OVERLAYS)
def test_every_object_is_valid(name: str) -> None:
    for document in overlay(name):
        if not document["apiVersion"].startswith("monitoring.coreos.com/"):
            kubernetes_validate.validate(document, "1.37", strict=True)


@pytest.mark.parametrize("name", OVERLAYS)
def test_lint_finds_nothing(name: str) -> None:
    done = run_helm("lint", "--strict", CHART, "-f", CHART / "overlays" / f"{name}.yaml")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "[WARNING]" not in done.stdout


def test_it_is_of_this_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    version = tomllib.loads(_PYPROJECT.read_text(encoding="utf-8"))["project"]["version"]

    assert (chart["version"], chart["appVersion"]) == (version, version)


REFUSED = {
    "a-word-for-a-switch": ("nri.enabled=yes", "'/nri/enabled': got string, want boolean"),
    "an-unknown-key": ("nri.enable=true", "'/nri': additional properties 'enable' not allowed"),
    "an-unknown-section": ("agent.x=1", "additional properties 'agent' not allowed"),
    "a-number-for-a-cpuset": (
        "config.reservedSystemCPUs=0",
        "'/config/reservedSystemCPUs': got number, want string",
    ),
    "a-policy-misspelt": (
        "config.memoryManagerPolicy=static",
        "'/config/memoryManagerPolicy': value must be one of 'None', 'Static'",
    ),
    "a-layout-misspelt": (
        "services.layout=one",
        "'/services/layout': value must be one of 'separate', 'all-in-one'",
    ),
    "a-relative-directory": ("nri.socketDirectory=run/nri", "'/nri/socketDirectory'"),
    "an-endpoint-with-a-scheme": ("collector.endpoint=http://x:4317", "'/collector/endpoint'"),
    "an-interval-without-unit": ("monitoring.interval=15", "'/monitoring/interval'"),
    "an-unknown-part-of-a-toleration": ("tolerations[0].verb=Exists", "'/tolerations/0'"),
    "what-the-manifest-decides": (
        "config.numalign.hostRoot=/mnt",
        "config.numalign.hostRoot is given, but the chart writes it itself",
    ),
    "what-another-value-decides": (
        "config.numalign.devicePlugins.mode=host",
        "set devices.mode instead",
    ),
    "what-a-value-of-the-plugin-decides": (
        "config.numalign.agent.nri.onReject=evict",
        "config.numalign.agent.nri.onReject is given, but the chart writes it itself",
    ),
    "devices-without-the-plugin": (
        "nri.enabled=false,devices.mode=host",
        'devices.mode is "host", which needs nri.enabled: true',
    ),
    "an-export-without-the-plugin": (
        "nri.enabled=false,node.exportTopology=true",
        "node.exportTopology is true, which needs nri.enabled: true",
    ),
}


@pytest.mark.parametrize(("values", "said"), REFUSED.values(), ids=REFUSED)
def test_values_that_are_wrong_are_named(values: str, said: str) -> None:
    assert said in refusal("--set", values)


def only(documents: Any, kind: str) -> Any:
    """The one object of a kind."""
    (document,) = of_kind(documents, kind)
    return document


def test_a_configuration_of_ones_own(tmp_path: Path) -> None:
    """What is given is added to what the chart writes, and the services take it."""
    values = {
        "config": {
            "topologyManagerPolicy": "single-numa-node",
            "memoryManagerPolicy": "Static",
            "reservedMemory": [{"numaNode": 0, "limits": {"memory": "100Mi"}}],
            "evictionHard": {"memory.available": "100Mi"},
            "numalign": {
                "log": {"level": "debug"},
                "agent": {"nri": {"requestTimeout": "5s"}},
            },
        },
        "nri": {"onReject": "evict"},
    }
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values), encoding="utf-8")
    made = tmp_path / "config.yaml"
    made.write_text(only(charted("-f", file), "ConfigMap")["data"]["config.yaml"], encoding="utf-8")
    settings = load_settings(made, {}, is_root=False)
    plugin = yaml.safe_load(made.read_text(encoding="utf-8"))["numalign"]["agent"]["nri"]

    assert settings.warnings == ()
    assert settings.topology.policy == "single-numa-node"
    assert settings.host_root == Path("/host")
    assert plugin == {"onReject": "evict", "requestTimeout": "5s", "address": "0.0.0.0:9470"}


def test_two_releases_beside_each_other() -> None:
    """For nodes of two kinds: no name and no pod is one of both."""
    one = charted("--set", "nodeSelector.kind=gpu", release="numalign-gpu")
    two = charted("--set", "nodeSelector.kind=telco", release="telco")

    assert not by_name(one).keys() & by_name(two).keys()
    selectors = [only(each, "DaemonSet")["spec"]["selector"]["matchLabels"] for each in (one, two)]
    assert selectors[0] != selectors[1]
    for documents in (one, two):
        daemon_set = only(documents, "DaemonSet")
        labels = daemon_set["spec"]["template"]["metadata"]["labels"]
        assert daemon_set["spec"]["selector"]["matchLabels"].items() <= labels.items()
        named = {document["metadata"]["name"] for document in documents}
        pod = daemon_set["spec"]["template"]["spec"]
        volumes = [each["configMap"]["name"] for each in pod["volumes"] if "configMap" in each]
        assert {pod["serviceAccountName"], *volumes} <= named


def test_another_configuration_rolls_the_pods() -> None:
    def annotations(*arguments: str) -> Any:
        daemon_set = only(charted(*arguments), "DaemonSet")
        return daemon_set["spec"]["template"]["metadata"]["annotations"]

    assert annotations() == annotations("--set", "image.repository=example.com/numalign")
    assert annotations() != annotations("--set", "config.topologyManagerScope=pod")


def test_the_collector_scrapes_those_that_there_are() -> None:
    made = charted("--set", "collector.enabled=true,services.layout=all-in-one")
    (config,) = (
        yaml.safe_load(document["data"]["collector.yaml"])
        for document in of_kind(made, "ConfigMap")
        if "collector.yaml" in document["data"]
    )
    (job,) = config["receivers"]["prometheus"]["config"]["scrape_configs"]

    assert job["static_configs"] == [
        {"targets": ["127.0.0.1:9464", "127.0.0.1:9470", "127.0.0.1:9471"]}
    ]
