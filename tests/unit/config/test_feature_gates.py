"""Feature gates: defaults, stages, locks and dependencies."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from numalign.config.feature_gates import GATES, Stage, read_feature_gates
from numalign.document.problems import Problems
from numalign.document.section import Section
from numalign.model.feature_gates import FeatureGates


def _read(given: object) -> tuple[FeatureGates, tuple[str, ...], tuple[str, ...]]:
    problems = Problems()
    read = read_feature_gates(Section(given, "featureGates", problems))
    return read.gates, read.warnings, problems.sentences()


def test_table_agrees_with_the_model() -> None:
    in_table = {spec.field: spec.default for spec in GATES.values() if spec.field}

    assert in_table == asdict(FeatureGates())
    assert _read(None) == (FeatureGates(), (), ())


def test_every_requirement_is_a_gate() -> None:
    for spec in GATES.values():
        assert set(spec.requires) <= set(GATES)
        assert not spec.locked or spec.stage is Stage.GA


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            {"PodLevelResourceManagers": True},
            FeatureGates(pod_level_resource_managers=True),
            id="one gate",
        ),
        pytest.param(
            {"AllAlpha": True, "PodLevelResourceManagers": False},
            FeatureGates(
                cpu_manager_policy_alpha_options=True,
                topology_manager_policy_alpha_options=True,
                in_place_pod_vertical_scaling_exclusive_cpus=True,
                in_place_pod_vertical_scaling_exclusive_memory=True,
            ),
            id="all of a stage but one",
        ),
        pytest.param(
            {"AllBeta": False},
            FeatureGates(
                cpu_manager_policy_beta_options=False,
                topology_manager_policy_beta_options=False,
                pod_level_resources=False,
                dra_extended_resource=False,
                resource_health_status=False,
                in_place_pod_vertical_scaling_init_containers=False,
                in_place_pod_level_resources_vertical_scaling=False,
            ),
            id="none of a stage",
        ),
        pytest.param({"InPlacePodVerticalScaling": True}, FeatureGates(), id="as it is locked"),
        pytest.param(
            {"DisableCPUQuotaWithExclusiveCPUs": False},
            FeatureGates(disable_cpu_quota_with_exclusive_cpus=False),
            id="a deprecated gate",
        ),
    ],
)
def test_set(given: dict[str, bool], expected: FeatureGates) -> None:
    assert _read(given) == (expected, (), ())


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        pytest.param(
            {"TopologyManagerPolicyOptions": False},
            "cannot set feature gate TopologyManagerPolicyOptions to false, "
            "feature is locked to true",
            id="locked",
        ),
        pytest.param(
            {
                "PodLevelResourceManagers": True,
                "PodLevelResources": False,
                "InPlacePodLevelResourcesVerticalScaling": False,
            },
            "PodLevelResourceManagers is enabled, but depends on features that are disabled: "
            "[PodLevelResources]",
            id="dependency",
        ),
        pytest.param(
            {"PodLevelResources": False},
            "InPlacePodLevelResourcesVerticalScaling is enabled, but depends on features that "
            "are disabled: [PodLevelResources]",
            id="dependency of a default",
        ),
        pytest.param(
            {"PodLevelResources": "true"},
            'featureGates.PodLevelResources: must be true or false, not "true"',
            id="text",
        ),
    ],
)
def test_refused(given: dict[str, object], problem: str) -> None:
    assert problem in _read(given)[2]


def test_unknown_gate_is_a_warning() -> None:
    gates, warnings, problems = _read({"NodeSwap": True})

    assert gates == FeatureGates()
    assert warnings == ("featureGates.NodeSwap: no decision depends on this feature gate",)
    assert problems == ()
