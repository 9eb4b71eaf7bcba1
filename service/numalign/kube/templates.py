"""Pods out of manifests: pods themselves, and one pod for each workload's template.

Separate from the JSON of a pod because it knows what other kinds look like, and because what
it makes is a stand-in: a controller would add a random name and its own uid.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from numalign.errors import FieldViolation, InvalidInput
from numalign.kube.core.v1 import core_pb2
from numalign.kube.invented_uid import invented_uid
from numalign.kube.manifest_text import documents_of
from numalign.kube.pod_decode import read_pod
from numalign.kube.pod_defaults import apply_defaults
from numalign.kube.pod_json import pod_from_json
from numalign.kube.violations import duplicate, required

_TEMPLATE = ("spec", "template")
_TEMPLATES: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("", "Pod"): (),
    ("", "ReplicationController"): _TEMPLATE,
    ("apps", "Deployment"): _TEMPLATE,
    ("apps", "StatefulSet"): _TEMPLATE,
    ("apps", "DaemonSet"): _TEMPLATE,
    ("apps", "ReplicaSet"): _TEMPLATE,
    ("batch", "Job"): _TEMPLATE,
    ("batch", "CronJob"): ("spec", "jobTemplate", *_TEMPLATE),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestPods:
    """The pods found, in order, and a sentence with a path for everything left aside."""

    pods: tuple[core_pb2.Pod, ...]
    ignored: tuple[str, ...]


def pods_from_text(text: str) -> ManifestPods:
    """The pods in the text of a manifest, YAML or JSON; raises InvalidInput as below."""
    return pods_from_documents(documents_of(text))


def pods_from_documents(documents: Iterable[object]) -> ManifestPods:
    """The pods in decoded documents; lists are opened, other kinds than workloads left aside.

    A workload gives one pod, whatever its number of replicas, in the workload's namespace and
    under its name if the template has none. API defaults are filled in. A pod without a uid
    gets one that depends on kind, namespace and name alone. Raises InvalidInput whose paths
    begin with `documents[index]`, for everything malformed in any of them.
    """
    collector = _Collector()
    for index, document in enumerate(documents):
        if document is not None:
            collector.add(document, f"documents[{index}]", "", "")
    if collector.violations:
        raise InvalidInput(*collector.violations)
    return ManifestPods(pods=tuple(collector.pods), ignored=tuple(collector.ignored))


class _Collector:
    """What one pass over the documents has found."""

    __slots__ = ("_uids", "ignored", "pods", "violations")

    def __init__(self) -> None:
        self.pods: list[core_pb2.Pod] = []
        self.ignored: list[str] = []
        self.violations: list[FieldViolation] = []
        self._uids: set[str] = set()

    def add(self, obj: object, path: str, api_version: str, kind: str) -> None:
        """Take in one object; `api_version` and `kind` are what a typed list implies."""
        if not isinstance(obj, Mapping):
            self.violations.append(FieldViolation(path, "Invalid value: must be an object"))
            return
        version = obj.get("apiVersion") or api_version
        name = obj.get("kind") or kind
        if not isinstance(version, str) or not isinstance(name, str):
            detail = "Invalid value: apiVersion and kind must be text"
            self.violations.append(FieldViolation(path, detail))
            return
        if not name or not version:
            missing = "apiVersion" if name else "kind"
            self.violations.append(required(f"{path}.{missing}"))
            return
        group = version.rpartition("/")[0]
        way = _TEMPLATES.get((group, name))
        if way is not None:
            self._add_pod(obj, path, name, way)
        elif name.endswith("List"):
            self._add_list(obj, path, version, name.removesuffix("List"))
        else:
            self.ignored.append(f"{path}: kind {name} of {version} starts no pods")

    def _add_list(self, obj: Mapping[str, object], path: str, version: str, kind: str) -> None:
        items = obj.get("items")
        if not isinstance(items, list | tuple | None):
            detail = "Invalid value: must be a list"
            self.violations.append(FieldViolation(f"{path}.items", detail))
            return
        for index, item in enumerate(items or ()):
            self.add(item, f"{path}.items[{index}]", version if kind else "", kind)

    def _add_pod(
        self, obj: Mapping[str, object], path: str, kind: str, way: tuple[str, ...]
    ) -> None:
        template, template_path = self._follow(obj, path, way)
        if template is None:
            return
        ignored: list[str] = []
        try:
            fields = template if not way else _template_fields(template)
            pod = pod_from_json(fields, ignored=ignored, path=template_path)
            if way:
                _adopt(pod, pod_from_json({"metadata": obj.get("metadata")}, path=path))
        except InvalidInput as error:
            self.violations.extend(error.violations)
            return
        self.ignored.extend(f"{key}: has no bearing on a node" for key in ignored)
        self._finish(pod, path, template_path, kind)

    def _follow(
        self, obj: Mapping[str, object], path: str, way: tuple[str, ...]
    ) -> tuple[Mapping[str, object] | None, str]:
        """The template at the end of `way`, None (and a violation) if it is not there."""
        for key in way:
            path = f"{path}.{key}"
            inner = obj.get(key)
            if inner is None:
                self.violations.append(required(path))
                return None, path
            if not isinstance(inner, Mapping):
                self.violations.append(FieldViolation(path, "Invalid value: must be an object"))
                return None, path
            obj = inner
        return obj, path

    def _finish(self, pod: core_pb2.Pod, path: str, template_path: str, kind: str) -> None:
        metadata = pod.metadata
        metadata.namespace = metadata.namespace or "default"
        metadata.name = metadata.name or metadata.generate_name.rstrip("-")
        if not metadata.name:
            detail = "name or generateName is required"
            self.violations.append(required(f"{path}.metadata.name", detail))
            return
        if not metadata.uid:
            metadata.uid = invented_uid(kind, metadata.namespace, metadata.name)
        if metadata.uid in self._uids:
            self.violations.append(duplicate(f"{path}.metadata.name", metadata.name))
        self._uids.add(metadata.uid)
        apply_defaults(pod)
        _, violations = read_pod(pod)
        self.violations.extend(
            FieldViolation(f"{template_path}.{v.field}", v.description) for v in violations
        )
        self.pods.append(pod)


def _template_fields(template: Mapping[str, object]) -> dict[str, object]:
    """The parts of a template that a pod takes over: a template has no kind and no status."""
    return {key: value for key, value in template.items() if key not in {"apiVersion", "kind"}}


def _adopt(pod: core_pb2.Pod, workload: core_pb2.Pod) -> None:
    """Give the pod of a template the place of its workload, and a name if it has none."""
    pod.metadata.namespace = workload.metadata.namespace
    pod.metadata.name = (
        pod.metadata.name or workload.metadata.name or workload.metadata.generate_name
    ).rstrip("-")
