"""The object: its attributes, what it shares with an object that is there, and its schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from tests.unit.agent.node.topology.nodes import machine, resources

from numalign.v1 import types_pb2 as pb
from numalign_agent.node.settings import Counted, Fingerprint
from numalign_agent.node.topology.fingerprint import fingerprint
from numalign_agent.node.topology.objects import (
    Policy,
    content,
    new_object,
    renewed,
    says,
    writers,
)

CRD = Path(__file__).parents[5] / "deploy/crds/noderesourcetopologies.yaml"
EMPTY = "pfp0v001ef46db3751d8e999"
POD = pb.AdmissionRecord(namespace="ns1", name="n1", qos_class="Guaranteed")
OWNER = {"apiVersion": "v1", "kind": "Node", "name": "node-1", "uid": "u1"}


def made(
    policy: str = "single-numa-node",
    scope: str = "container",
    options: dict[str, str] | None = None,
    method: Fingerprint = Fingerprint.ALL,
) -> dict[str, Any]:
    found = Policy(policy=policy, scope=scope, options=options or {})
    return content(machine(), found, resources(), [POD], Counted(method=method))


def attributes(content: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["value"] for each in content["attributes"]}


@pytest.mark.parametrize(
    ("policy", "scope", "old", "told"),
    [
        ("single-numa-node", "container", "SingleNUMANodeContainerLevel", "container"),
        ("single-numa-node", "pod", "SingleNUMANodePodLevel", "pod"),
        ("restricted", "pod", "RestrictedPodLevel", "pod"),
        ("best-effort", "container", "BestEffortContainerLevel", "container"),
        ("none", "none", "None", "container"),
    ],
)
def test_policy_and_scope(policy: str, scope: str, old: str, told: str) -> None:
    found = made(policy, scope)

    assert found["topologyPolicies"] == [old]
    assert attributes(found)["topologyManagerPolicy"] == policy
    assert attributes(found)["topologyManagerScope"] == told


def test_options() -> None:
    found = attributes(
        made(options={"prefer-closest-numa-nodes": "true", "max-allowable-numa-nodes": "16"})
    )

    assert found["topologyManagerOptionPreferClosestNumaNodes"] == "true"
    assert found["topologyManagerMaxNUMANodes"] == "16"


@pytest.mark.parametrize("method", list(Fingerprint))
def test_the_fingerprint_and_how_it_was_made(method: Fingerprint) -> None:
    found = attributes(made(method=method))
    told = {name: value for name, value in found.items() if "Fingerprint" in name}

    # The one pod asks for nothing exclusive.
    values = {Fingerprint.ALL: fingerprint([("ns1", "n1")]), Fingerprint.EXCLUSIVE: EMPTY}
    assert told == (
        {}
        if method is Fingerprint.NONE
        else {
            "nodeTopologyPodsFingerprint": values[method],
            "nodeTopologyPodsFingerprintMethod": method.value,
        }
    )


def test_what_others_put_into_an_object_stays() -> None:
    other = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u2"}
    found = {
        **new_object("node-1", "u0", made("none")),
        "metadata": {
            "name": "node-1",
            "resourceVersion": "9",
            "labels": {"a": "b"},
            "ownerReferences": [{**OWNER, "uid": "u0"}, other],
        },
    }
    wanted = made()
    after = renewed(found, "node-1", "u1", wanted)

    assert not says(found, wanted)
    assert says(after, wanted)
    assert after["metadata"] == {**found["metadata"], "ownerReferences": [other, OWNER]}
    assert renewed(after, "node-1", "u1", wanted)["zones"] == wanted["zones"]


def test_an_object_that_says_all_is_left_as_it_is() -> None:
    found = new_object("node-1", "u1", made())

    assert renewed(found, "node-1", "u1", made()) == found


def test_writers_are_named() -> None:
    fields = [{"manager": "b"}, {"manager": "a"}, {"manager": "b"}]

    assert writers({"metadata": {"managedFields": fields}}) == "a, b"
    assert writers({}) == "unknown"


def test_the_object_fits_the_kind_that_is_deployed() -> None:
    (version,) = yaml.safe_load(CRD.read_text(encoding="utf-8"))["spec"]["versions"]
    found = new_object("node-1", "u1", made())
    schema = strict(version["schema"]["openAPIV3Schema"])
    wrong = {**found, "zones": [{**found["zones"][0], "cost": []}]}

    assert found["apiVersion"].endswith(f"/{version['name']}")
    jsonschema.validate(found, schema)
    with pytest.raises(jsonschema.ValidationError, match="cost"):
        jsonschema.validate(wrong, schema)


def strict(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema that takes no field that it does not name: an API server would drop it."""
    found = dict(schema)
    if "properties" in found:
        found["properties"] = {key: strict(each) for key, each in found["properties"].items()}
        found["additionalProperties"] = False
    if "items" in found:
        found["items"] = strict(found["items"])
    return found
