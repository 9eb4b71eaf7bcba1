"""The `featureGates` of a KubeletConfiguration.

Only the gates that change a decision here are known. A kubelet refuses a name it does not
know; here it may well be one of the kubelet's many other gates, so it is a warning.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from numalign.document.section import Section
from numalign.model.feature_gates import FeatureGates


class Stage(StrEnum):
    """How mature a gate is in v1.36."""

    ALPHA = "alpha"
    BETA = "beta"
    GA = "ga"
    DEPRECATED = "deprecated"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSpec:
    """One gate. `field` names its place in FeatureGates, empty where nothing here asks for it."""

    stage: Stage
    default: bool
    locked: bool = False
    field: str = ""
    requires: tuple[str, ...] = ()


_ALL_ALPHA = "AllAlpha"
_ALL_BETA = "AllBeta"

GATES: dict[str, GateSpec] = {
    "CPUManagerPolicyAlphaOptions": GateSpec(
        stage=Stage.ALPHA, default=False, field="cpu_manager_policy_alpha_options"
    ),
    "CPUManagerPolicyBetaOptions": GateSpec(
        stage=Stage.BETA, default=True, field="cpu_manager_policy_beta_options"
    ),
    "CPUManagerPolicyOptions": GateSpec(stage=Stage.GA, default=True, locked=True),
    "DRAExtendedResource": GateSpec(stage=Stage.BETA, default=True, field="dra_extended_resource"),
    "DisableCPUQuotaWithExclusiveCPUs": GateSpec(
        stage=Stage.DEPRECATED, default=True, field="disable_cpu_quota_with_exclusive_cpus"
    ),
    "DynamicResourceAllocation": GateSpec(stage=Stage.GA, default=True, locked=True),
    "InPlacePodLevelResourcesVerticalScaling": GateSpec(
        stage=Stage.BETA,
        default=True,
        field="in_place_pod_level_resources_vertical_scaling",
        requires=("InPlacePodVerticalScaling", "PodLevelResources"),
    ),
    "InPlacePodVerticalScaling": GateSpec(
        stage=Stage.GA, default=True, locked=True, field="in_place_pod_vertical_scaling"
    ),
    "InPlacePodVerticalScalingExclusiveCPUs": GateSpec(
        stage=Stage.ALPHA,
        default=False,
        field="in_place_pod_vertical_scaling_exclusive_cpus",
        requires=("InPlacePodVerticalScaling",),
    ),
    "InPlacePodVerticalScalingExclusiveMemory": GateSpec(
        stage=Stage.ALPHA,
        default=False,
        field="in_place_pod_vertical_scaling_exclusive_memory",
        requires=("InPlacePodVerticalScaling",),
    ),
    "InPlacePodVerticalScalingInitContainers": GateSpec(
        stage=Stage.BETA,
        default=True,
        field="in_place_pod_vertical_scaling_init_containers",
        requires=("InPlacePodVerticalScaling",),
    ),
    "PodLevelResourceManagers": GateSpec(
        stage=Stage.ALPHA,
        default=False,
        field="pod_level_resource_managers",
        requires=("PodLevelResources",),
    ),
    "PodLevelResources": GateSpec(stage=Stage.BETA, default=True, field="pod_level_resources"),
    "ResourceHealthStatus": GateSpec(
        stage=Stage.BETA, default=True, field="resource_health_status"
    ),
    "TopologyManagerPolicyAlphaOptions": GateSpec(
        stage=Stage.ALPHA, default=False, field="topology_manager_policy_alpha_options"
    ),
    "TopologyManagerPolicyBetaOptions": GateSpec(
        stage=Stage.BETA, default=True, field="topology_manager_policy_beta_options"
    ),
    "TopologyManagerPolicyOptions": GateSpec(stage=Stage.GA, default=True, locked=True),
}
"""The gates by name, with stages and defaults of v1.36 (TM-17, CPU-8, DEV-15, DEV-28, ALLOC-5)."""


@dataclass(frozen=True, slots=True)
class ReadGates:
    """The values of all gates, and a line for each name that is not known."""

    gates: FeatureGates
    warnings: tuple[str, ...] = ()


def read_feature_gates(section: Section) -> ReadGates:
    """The gates that `section` sets, over the defaults.

    `AllAlpha` and `AllBeta` set every gate of that stage that is not named itself. Recorded
    as problems, in the kubelet's words: a locked gate set otherwise, and a gate that is on
    while one it depends on is off.
    """
    warnings = []
    given: dict[str, bool] = {}
    for name in section.names():
        if name in GATES or name in (_ALL_ALPHA, _ALL_BETA):
            given[name] = section.boolean(name)
        else:
            warnings.append(f"{section.at(name)}: no decision depends on this feature gate")
    values = {name: _value_of(name, spec, given) for name, spec in GATES.items()}
    for name, spec in GATES.items():
        if spec.locked and values[name] != spec.default:
            section.problems.say(
                f"cannot set feature gate {name} to {_text(values[name])}, "
                f"feature is locked to {_text(spec.default)}"
            )
            values[name] = spec.default
    for name, spec in GATES.items():
        disabled = [other for other in spec.requires if not values[other]]
        if values[name] and disabled:
            section.problems.say(
                f"{name} is enabled, but depends on features that are disabled: "
                f"[{' '.join(disabled)}]"
            )
    fields = {spec.field: values[name] for name, spec in GATES.items() if spec.field}
    return ReadGates(FeatureGates(**fields), tuple(warnings))


def _value_of(name: str, spec: GateSpec, given: dict[str, bool]) -> bool:
    if name in given:
        return given[name]
    if spec.stage is Stage.ALPHA:
        return given.get(_ALL_ALPHA, spec.default)
    if spec.stage is Stage.BETA:
        return given.get(_ALL_BETA, spec.default)
    return spec.default


def _text(value: bool) -> str:
    return "true" if value else "false"
