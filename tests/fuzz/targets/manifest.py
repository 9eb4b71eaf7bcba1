"""The text of manifests, YAML and JSON: pods, lists, and the templates of workloads."""

from __future__ import annotations

import json

import yaml
from tests.fuzz.recorded import pods
from tests.fuzz.target import Target

from numalign.errors import InvalidInput
from numalign.kube.templates import pods_from_text


def _seeds() -> tuple[bytes, ...]:
    objects = [json.loads(text) for text in pods(12)]
    spec = objects[0]["spec"]
    template = {"metadata": {"labels": {"a": "b"}}, "spec": spec}
    meta = {"name": "w", "namespace": "n"}
    workloads = [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": meta,
            "spec": {"template": template},
        },
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": meta,
            "spec": {"jobTemplate": {"spec": {"template": template}}},
        },
        {"apiVersion": "v1", "kind": "List", "items": objects[:2]},
        {"apiVersion": "v1", "kind": "PodList", "items": objects[:2]},
    ]
    texts = [json.dumps(each) for each in (*objects, *workloads)]
    texts += [yaml.safe_dump(each) for each in (*objects[:4], *workloads)]
    texts += [yaml.safe_dump_all(workloads), "a: &a [1]\nb: *a\n<<: {c: 0x1F}\n---\ny: 12:30\n"]
    texts += ["!!bool 2", "!!int ''", "!!timestamp x", "!!float x", "[" * 4000, "{" * 4000]
    return tuple(text.encode() for text in texts)


def run(data: bytes) -> None:
    """Read the manifests in a text."""
    pods_from_text(data.decode("utf-8", "replace"))


TARGET = Target(
    name="manifest",
    run=run,
    documented=(InvalidInput,),
    seeds=_seeds(),
)
