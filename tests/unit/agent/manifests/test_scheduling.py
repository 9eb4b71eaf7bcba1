"""Affinity, topology spread and DNS settings of manifests, as the API server takes them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.agent.manifests.texts import manifest, read

from numalign_agent.manifests.errors import InvalidPod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NODES = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
PODS = f"spec.affinity.podAffinity.{REQUIRED}[0]"
SPREAD = "spec.topologySpreadConstraints[0]"


def nodes(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}}


def labels(operator: str, *values: str, key: str = "zone") -> dict[str, Any]:
    requirement: dict[str, Any] = {"key": key, "operator": operator}
    if values:
        requirement["values"] = list(values)
    return {"matchExpressions": [requirement]}


def fields(operator: str, *values: str, key: str = "metadata.name") -> dict[str, Any]:
    return {"matchFields": [{"key": key, "operator": operator, "values": list(values)}]}


def near(**term: Any) -> dict[str, Any]:
    return {"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": "zone", **term}]}}}


def spread(**constraint: Any) -> dict[str, Any]:
    whole = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [{**whole, **constraint}]}


def dns(policy: str = "ClusterFirst", **config: Any) -> dict[str, Any]:
    return {"dnsPolicy": policy, "dnsConfig": config}


GOOD = [
    pytest.param(nodes(labels("In", "a", "b"), labels("Exists")), id="nodes by labels"),
    pytest.param(nodes(labels("Gt", "5")), id="nodes by a number"),
    pytest.param(nodes(fields("In", "node-1")), id="one node"),
    pytest.param(
        {
            "affinity": {
                "nodeAffinity": {PREFERRED: [{"weight": 100, "preference": labels("NotIn", "a")}]}
            }
        },
        id="preferred nodes",
    ),
    pytest.param(
        near(labelSelector={"matchLabels": {"app": "x"}, **labels("DoesNotExist")}), id="near pods"
    ),
    pytest.param(
        {
            "affinity": {
                "podAntiAffinity": {
                    PREFERRED: [{"weight": 1, "podAffinityTerm": {"topologyKey": "a.b/zone"}}]
                }
            }
        },
        id="far from pods",
    ),
    pytest.param(spread(minDomains=2, nodeTaintsPolicy="Honor"), id="spread"),
    pytest.param(
        dns(
            "None",
            nameservers=["10.0.0.1", "fd00::1"],
            searches=["a.example.", "_srv.b", "."],
            options=[{"name": "ndots", "value": "5"}],
        ),
        id="own name servers",
    ),
]


@pytest.mark.parametrize("spec", GOOD)
def test_what_the_api_server_takes(spec: dict[str, Any]) -> None:
    shown = read(manifest(spec=spec)).spec

    assert {field: shown[field] for field in spec} == spec


BAD = [
    pytest.param(
        nodes(), NODES, "Required value: must have at least one node selector term", id="no term"
    ),
    pytest.param(
        nodes(labels("In")),
        f"{NODES}[0].matchExpressions[0].values",
        "Required value: must be specified when `operator` is 'In' or 'NotIn'",
        id="in nothing",
    ),
    pytest.param(
        nodes(labels("Exists", "a")),
        f"{NODES}[0].matchExpressions[0].values",
        "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        id="exists with a value",
    ),
    pytest.param(
        nodes(labels("Lt", "1", "2")),
        f"{NODES}[0].matchExpressions[0].values",
        "Required value: must be specified single value when `operator` is 'Lt' or 'Gt'",
        id="less than two values",
    ),
    pytest.param(
        nodes(labels("Like", "a")),
        f"{NODES}[0].matchExpressions[0].operator",
        'Invalid value: "Like": not a valid selector operator',
        id="operator",
    ),
    pytest.param(
        nodes(labels("Exists", key="a b")),
        f"{NODES}[0].matchExpressions[0].key",
        'Invalid value: "a b": name part must consist of',
        id="label",
    ),
    pytest.param(
        nodes(labels("In", "a b")),
        f"{NODES}[0].matchExpressions[0].values[0]",
        'Invalid value: "a b": a valid label must be',
        id="label value",
    ),
    pytest.param(
        nodes(fields("In", "a", "b")),
        f"{NODES}[0].matchFields[0].values",
        "Required value: must be only one value when `operator` is 'In' or 'NotIn' for node",
        id="two nodes by name",
    ),
    pytest.param(
        nodes(fields("In", "a", key="spec.x")),
        f"{NODES}[0].matchFields[0].key",
        'Invalid value: "spec.x": not a valid field selector key',
        id="field",
    ),
    pytest.param(
        nodes(fields("Gt", "a")),
        f"{NODES}[0].matchFields[0].operator",
        'Invalid value: "Gt": not a valid selector operator',
        id="field operator",
    ),
    pytest.param(
        {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 101, "preference": {}}]}}},
        f"spec.affinity.nodeAffinity.{PREFERRED}[0].weight",
        "Invalid value: 101: must be in the range 1-100",
        id="weight",
    ),
    pytest.param(
        near(topologyKey=""), f"{PODS}.topologyKey", "Required value: can not be empty", id="no key"
    ),
    pytest.param(
        near(namespaces=["A"]), f"{PODS}.namespaces[0]", 'Invalid value: "A": a low', id="namespace"
    ),
    pytest.param(
        near(labelSelector=labels("Gt", "1")),
        f"{PODS}.labelSelector.matchExpressions[0].operator",
        'Invalid value: "Gt": not a valid selector operator',
        id="numbers of pods",
    ),
    pytest.param(
        near(labelSelector={"matchLabels": {"a": "b c"}}),
        f"{PODS}.labelSelector.matchLabels",
        'Invalid value: "b c": a valid label must be',
        id="label of pods",
    ),
    pytest.param(
        spread(maxSkew=0),
        f"{SPREAD}.maxSkew",
        "Invalid value: 0: must be greater than zero",
        id="skew",
    ),
    pytest.param(
        spread(whenUnsatisfiable="Maybe"),
        f"{SPREAD}.whenUnsatisfiable",
        'Unsupported value: "Maybe": supported values: "DoNotSchedule", "ScheduleAnyway"',
        id="otherwise",
    ),
    pytest.param(
        spread(whenUnsatisfiable="ScheduleAnyway", minDomains=2),
        f"{SPREAD}.minDomains",
        "Invalid value: 2: can only use minDomains if whenUnsatisfiable=DoNotSchedule",
        id="domains that are not needed",
    ),
    pytest.param(
        spread(minDomains=0),
        f"{SPREAD}.minDomains",
        "Invalid value: 0: must be greater than zero",
        id="no domain",
    ),
    pytest.param(
        spread(nodeAffinityPolicy="No"),
        f"{SPREAD}.nodeAffinityPolicy",
        'Unsupported value: "No": supported values: "Honor", "Ignore"',
        id="inclusion",
    ),
    pytest.param(
        {"topologySpreadConstraints": 2 * spread()["topologySpreadConstraints"]},
        "spec.topologySpreadConstraints[1].{topologyKey, whenUnsatisfiable}",
        'Duplicate value: "{zone, DoNotSchedule}"',
        id="twice",
    ),
    pytest.param(
        {"dnsPolicy": "None"},
        "spec.dnsConfig",
        "Required value: must provide `dnsConfig` when `dnsPolicy` is None",
        id="no settings",
    ),
    pytest.param(
        dns("None", searches=["a"]),
        "spec.dnsConfig.nameservers",
        "Required value: must provide at least one DNS nameserver when `dnsPolicy` is None",
        id="no server",
    ),
    pytest.param(
        dns(nameservers=["10.0.0.1"] * 4),
        "spec.dnsConfig.nameservers",
        "Invalid value: must not have more than 3 nameservers",
        id="four servers",
    ),
    pytest.param(
        dns(nameservers=["dns.example"]),
        "spec.dnsConfig.nameservers[0]",
        'Invalid value: "dns.example": must be a valid IP address',
        id="a server by name",
    ),
    pytest.param(
        dns(searches=["A.example"]), "spec.dnsConfig.searches[0]", "Invalid value: ", id="search"
    ),
    pytest.param(
        dns(searches=["a"] * 33),
        "spec.dnsConfig.searches",
        "Invalid value: must not have more than 32 search paths",
        id="searches",
    ),
    pytest.param(
        dns(searches=["a" * 60 + ".example"] * 32),
        "spec.dnsConfig.searches",
        "Invalid value: must not have more than 2048 characters (including spaces)",
        id="long searches",
    ),
    pytest.param(
        dns(options=[{"value": "5"}]),
        "spec.dnsConfig.options[0]",
        "Required value: must not be empty",
        id="an option without name",
    ),
]


@pytest.mark.parametrize(("spec", "path", "why"), BAD)
def test_what_the_api_server_refuses(spec: dict[str, Any], path: str, why: str) -> None:
    with pytest.raises(InvalidPod) as refused:
        read(manifest(spec=spec))

    (found,) = refused.value.violations
    assert found.field == path
    assert found.description.startswith(why)
