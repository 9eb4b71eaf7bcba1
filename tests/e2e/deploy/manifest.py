"""What a kubelet makes of a container of a manifest before it asks the runtime for it.

Fields that are not known here are refused, so that nothing of a manifest is left out unseen.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tests.deploy.manifests import Document
from tests.e2e.cri import OF_CONTAINER, OF_POD, cri

HOST_TO_CONTAINER = 1
_RUNTIME_DEFAULT = 0
_MASKED = (
    *("/proc/asound", "/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats"),
    *("/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi"),
    "/sys/firmware",
)
_READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
_UNITS = {"": 1, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}

CONTAINER_FIELDS = {
    *("name", "image", "command", "args", "env", "ports", "securityContext", "resources"),
    *("volumeMounts", "startupProbe", "livenessProbe", "readinessProbe"),
}
POD_FIELDS = {
    *("serviceAccountName", "automountServiceAccountToken", "priorityClassName", "nodeSelector"),
    *("tolerations", "terminationGracePeriodSeconds", "securityContext", "initContainers"),
    *("containers", "volumes"),
}
NAMESPACES = {"network": OF_POD, "pid": OF_CONTAINER}


def only(value: Document, fields: set[str]) -> Document:
    """The value, which has no other fields than these."""
    assert value.keys() <= fields, f"not known to this test: {value.keys() - fields}"
    return value


def seccomp(context: Document) -> dict[str, Any]:
    """The profile of a pod, as the runtime calls it."""
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    return {"profile_type": _RUNTIME_DEFAULT}


def container_config(
    pod: Document,
    container: Document,
    environment: Mapping[str, str],
    mounted: Mapping[str, str],
    attempt: int,
) -> Any:
    """One container of a pod, for the runtime.

    `environment` is what the kubelet adds, and what fields of the pod are called in it by
    their path; `mounted` are places of volumes on the host.
    """
    only(container, CONTAINER_FIELDS)
    envs = {key: value for key, value in environment.items() if "." not in key}
    for entry in container.get("env", ()):
        only(entry, {"name", "value", "valueFrom"})
        envs[entry["name"]] = (
            entry["value"]
            if "value" in entry
            else environment[entry["valueFrom"]["fieldRef"]["fieldPath"]]
        )
    name = container["name"]
    return cri.ContainerConfig(
        metadata={"name": name, "attempt": attempt},
        image={"image": container["image"]},
        command=_expanded(container.get("command", ()), envs),
        args=_expanded(container.get("args", ()), envs),
        envs=[{"key": key, "value": value} for key, value in envs.items()],
        mounts=[_mount(mount, mounted) for mount in container["volumeMounts"]],
        labels={"io.kubernetes.container.name": name},
        log_path=f"{name}-{attempt}.log",
        linux={
            "resources": _resources(container["resources"]),
            "security_context": _security(pod["securityContext"], container["securityContext"]),
        },
    )


def _expanded(words: Sequence[str], envs: Mapping[str, str]) -> list[str]:
    """$(NAME) stands for a variable of the container."""
    return [re.sub(r"\$\((\w+)\)", lambda found: envs[found[1]], word) for word in words]


def _mount(mount: Document, mounted: Mapping[str, str]) -> Any:
    only(mount, {"name", "mountPath", "readOnly", "mountPropagation"})
    propagation = mount.get("mountPropagation")
    assert propagation in {None, "HostToContainer"}
    return cri.Mount(
        container_path=mount["mountPath"],
        host_path=mounted[mount["name"]],
        readonly=mount.get("readOnly", False),
        propagation=HOST_TO_CONTAINER if propagation else 0,
    )


def _resources(resources: Document) -> Any:
    requests, limits = resources["requests"], only(resources["limits"], {"memory"})
    thousandths = re.fullmatch(r"(\d+)m", requests["cpu"])
    assert thousandths is not None
    memory = re.fullmatch(r"(\d+)([KMG]i)?", limits["memory"])
    assert memory is not None
    return cri.LinuxContainerResources(
        cpu_shares=max(2, int(thousandths[1]) * 1024 // 1000),
        memory_limit_in_bytes=int(memory[1]) * _UNITS[memory[2] or ""],
    )


def _security(pod: Document, container: Document) -> Any:
    """What a container says goes before what its pod says."""
    both = only(
        {**pod, **container},
        {
            *("runAsNonRoot", "runAsUser", "runAsGroup", "seccompProfile"),
            *("allowPrivilegeEscalation", "readOnlyRootFilesystem", "capabilities"),
        },
    )
    assert both["runAsUser"] != 0 or not both["runAsNonRoot"], "the kubelet would refuse it"
    capabilities = only(both["capabilities"], {"add", "drop"})
    return cri.LinuxContainerSecurityContext(
        capabilities={
            "add_capabilities": capabilities.get("add", ()),
            "drop_capabilities": capabilities["drop"],
        },
        namespace_options=NAMESPACES,
        run_as_user={"value": both["runAsUser"]},
        run_as_group={"value": both["runAsGroup"]},
        readonly_rootfs=both["readOnlyRootFilesystem"],
        no_new_privs=not both["allowPrivilegeEscalation"],
        masked_paths=_MASKED,
        readonly_paths=_READ_ONLY,
        seccomp=seccomp(both),
    )
