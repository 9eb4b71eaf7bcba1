"""Every check on a pod, in the order of its fields."""

from __future__ import annotations

from typing import Any

from numalign.errors import FieldViolation
from numalign.kube.names import check_label, check_subdomain
from numalign.kube.pod_decode import read_pod
from numalign.kube.pod_json import pod_from_json
from numalign_agent.manifests.validation.affinity import check_affinity
from numalign_agent.manifests.validation.containers import check_containers
from numalign_agent.manifests.validation.dns import check_dns
from numalign_agent.manifests.validation.metadata import check_metadata
from numalign_agent.manifests.validation.spread import check_spread
from numalign_agent.manifests.validation.tolerations import check_tolerations
from numalign_agent.manifests.validation.volumes import check_volumes
from numalign_agent.manifests.validation.words import (
    Problems,
    check_at_least,
    check_label_value,
    check_one_of,
    check_qualified,
)

Document = dict[str, Any]

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_SYSTEMS = ("linux", "windows")
_PREEMPTION = ("PreemptLowerPriority", "Never")


def pod_problems(document: Document) -> list[FieldViolation]:
    """What the API server would refuse in a decoded, defaulted and placed pod; empty: nothing."""
    spec = document["spec"]
    names = {volume.get("name", "") for volume in spec.get("volumes", ())}
    found = [
        *check_metadata(document["metadata"]),
        *check_volumes(spec),
        *check_containers(spec, names),
        *_check_spec(spec),
        *check_affinity(spec),
        *check_tolerations(spec),
        *check_spread(spec),
    ]
    # What decisions are made on is read by the services' own rules: amounts, and names twice.
    _, deciding = read_pod(pod_from_json(document))
    known = {problem.field for problem in found}
    return [*found, *(problem for problem in deciding if problem.field not in known)]


def _check_spec(spec: Document) -> Problems:
    yield from check_one_of("spec.restartPolicy", spec["restartPolicy"], _RESTART_POLICIES)
    yield from check_dns(spec)
    grace, deadline = "terminationGracePeriodSeconds", "activeDeadlineSeconds"
    yield from check_at_least(f"spec.{grace}", spec.get(grace), 0)
    yield from check_at_least(f"spec.{deadline}", spec.get(deadline), 1)
    yield from check_subdomain("spec.nodeName", spec["nodeName"])
    for key, value in spec.get("nodeSelector", {}).items():
        yield from check_qualified("spec.nodeSelector", key)
        yield from check_label_value("spec.nodeSelector", value)
    for field in ("hostname", "subdomain"):
        if spec.get(field):
            yield from check_label(f"spec.{field}", spec[field])
    for field in ("priorityClassName", "runtimeClassName"):
        if spec.get(field):
            yield from check_subdomain(f"spec.{field}", spec[field])
    if "preemptionPolicy" in spec:
        yield from check_one_of("spec.preemptionPolicy", spec["preemptionPolicy"], _PREEMPTION)
    if "os" in spec:
        yield from check_one_of("spec.os.name", spec["os"].get("name"), _SYSTEMS)
    security = spec["securityContext"]
    for field in ("runAsUser", "runAsGroup", "fsGroup"):
        yield from check_at_least(f"spec.securityContext.{field}", security.get(field), 0)
