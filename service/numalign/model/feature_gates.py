"""The Kubernetes feature gates that change a decision here, with the v1.36 defaults."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureGates:
    """Value of each gate (TM-17, CPU-8, DEV-15, DEV-28, ALLOC-5)."""

    cpu_manager_policy_alpha_options: bool = False
    cpu_manager_policy_beta_options: bool = True
    topology_manager_policy_alpha_options: bool = False
    topology_manager_policy_beta_options: bool = True
    pod_level_resources: bool = True
    pod_level_resource_managers: bool = False
    dra_extended_resource: bool = True
    resource_health_status: bool = True
    in_place_pod_vertical_scaling: bool = True
    in_place_pod_vertical_scaling_exclusive_cpus: bool = False
    in_place_pod_vertical_scaling_exclusive_memory: bool = False
    in_place_pod_vertical_scaling_init_containers: bool = True
    in_place_pod_level_resources_vertical_scaling: bool = True
    disable_cpu_quota_with_exclusive_cpus: bool = True
