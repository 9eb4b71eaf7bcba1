"""The predicate handler: order, reasons and texts."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.admission.handlers.admit_pods import CRITICAL, STATIC, node, pod

from numalign.admission.handlers.admit_pod import AdmitPod
from numalign.admission.handlers.node_view import NodeView
from numalign.admission.handlers.predicates import (
    NO_DEVICES,
    DeviceCounts,
    Fit,
    decide_predicates,
)
from numalign.model.feature_gates import FeatureGates

_SELECTOR: dict[str, Any] = {"nodeSelector": {"zone": "a"}}


def _decide(
    given: dict[str, Any],
    on: NodeView | None,
    *others: AdmitPod,
    devices: DeviceCounts = NO_DEVICES,
) -> Fit:
    return decide_predicates(pod(**given), others, on, devices, FeatureGates())


@pytest.mark.parametrize(
    ("given", "on", "reason", "message"),
    [
        pytest.param({}, None, "InvalidNodeInfo", "Kubelet cannot get node info.", id="no-node"),
        pytest.param({"requests": {"cpu": "4"}}, node(), "", "", id="exactly-fits"),
        pytest.param(
            {"requests": {"cpu": "4001m"}},
            node(),
            "OutOfcpu",
            "Node didn't have enough resource: cpu, requested: 4001, used: 0, capacity: 4000",
            id="cpu",
        ),
        pytest.param(
            {"requests": {"cpu": "5"}} | _SELECTOR,
            node(),
            "OutOfcpu",
            "Node didn't have enough resource: cpu, requested: 5000, used: 0, capacity: 4000",
            id="trap-15-first-failure-only",
        ),
        pytest.param(
            {"requests": {"cpu": "5"}, "priority": CRITICAL} | _SELECTOR,
            node(),
            "NodeAffinity",
            "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
            id="trap-15-critical",
        ),
        pytest.param(
            {"requests": {"example.com/gpu": "1"}}, node(), "", "", id="trap-17-missing-is-dropped"
        ),
        pytest.param(
            {"requests": {"example.com/gpu": "1"}},
            node({"example.com/gpu": "0"}),
            "OutOfexample.com/gpu",
            "Node didn't have enough resource: example.com/gpu, requested: 1, used: 0, capacity: 0",
            id="trap-17-named-with-zero",
        ),
        pytest.param(
            {},
            node({"pods": "0"}),
            "OutOfpods",
            "Node didn't have enough resource: pods, requested: 1, used: 0, capacity: 0",
            id="pods",
        ),
        pytest.param(
            {"nodeName": "other"},
            node(),
            "NodeName",
            "Predicate NodeName failed: node(s) didn't match the requested node name",
            id="node-name",
        ),
        pytest.param(
            {},
            node(taints=[{"key": "k", "effect": "NoExecute"}]),
            "TaintToleration",
            "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate",
            id="taint",
        ),
        pytest.param(
            {}, node(taints=[{"key": "k", "effect": "NoSchedule"}]), "", "", id="trap-21-cordoned"
        ),
        pytest.param(
            {"metadata": STATIC},
            node(taints=[{"key": "k", "effect": "NoExecute"}]),
            "",
            "",
            id="trap-22-static",
        ),
        pytest.param(
            {"metadata": {"labels": {"kubernetes.io/os": "windows"}}},
            node(),
            "PodOSSelectorNodeLabelDoesNotMatch",
            "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
            id="trap-13-label",
        ),
        pytest.param(
            {"nodeSelector": {"kubernetes.io/os": "windows"}},
            node(),
            "NodeAffinity",
            "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
            id="trap-13-selector",
        ),
        pytest.param(
            {"nodeSelector": {"kubernetes.io/os": "linux"}},
            node(labels={"kubernetes.io/os": "windows"}),
            "",
            "",
            id="trap-14-label-is-forced",
        ),
        pytest.param(
            {"os": {"name": "windows"}},
            node(),
            "PodOSNotSupported",
            "Failed to admit pod as the OS field doesn't match node OS",
            id="os-field",
        ),
        pytest.param(
            {"securityContext": {"supplementalGroupsPolicy": "Strict"}},
            node(),
            "SupplementalGroupsPolicyNotSupported",
            "SupplementalGroupsPolicy=Strict is not supported in this node",
            id="groups-policy",
        ),
        pytest.param(
            {"securityContext": {"supplementalGroupsPolicy": "Strict"}},
            node(features={"supplementalGroupsPolicy": True}),
            "",
            "",
            id="groups-policy-supported",
        ),
    ],
)
def test_verdict(given: dict[str, Any], on: NodeView | None, reason: str, message: str) -> None:
    """PRED-1 to PRED-12."""
    verdict = _decide(given, on).verdict

    assert (verdict.reason, verdict.message) == (reason, message)
    assert verdict.admit is (not reason)


def test_others_are_counted() -> None:
    """PRED-3, trap 20: rounded once per pod, then added."""
    others = [pod(f"o{i}", requests={"cpu": "1200u"}) for i in range(3)]
    fit = _decide({"requests": {"cpu": "3995m"}}, node(), *others)

    assert fit.verdict.message.endswith("requested: 3995, used: 6, capacity: 4000")


def test_others_count_with_their_largest_number() -> None:
    """PRED-7, trap 24."""
    status: dict[str, Any] = {
        "containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]
    }
    shrinking = pod("o", requests={"cpu": "1"}, status=status)

    assert _decide({"requests": {"cpu": "2"}}, node(), shrinking).verdict.admit
    assert not _decide({"requests": {"cpu": "3"}}, node(), shrinking).verdict.admit


def test_an_infeasible_resize_does_not_count() -> None:
    """PRED-7."""
    status: dict[str, Any] = {
        "containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
    }
    other = pod("o", requests={"cpu": "4"}, status=status)

    assert _decide({"requests": {"cpu": "3"}}, node(), other).verdict.admit


def test_devices_just_given_raise_allocatable() -> None:
    """PRED-4, trap 18."""
    given: dict[str, Any] = {"requests": {"example.com/gpu": "1"}}
    on = node({"example.com/gpu": "0"})
    held = DeviceCounts(allocated={"example.com/gpu": 1}, pod_holds_some=True)

    assert _decide(given, on, devices=held).verdict.admit
    others_hold = DeviceCounts(allocated={"example.com/gpu": 1})
    assert not _decide(given, on, devices=others_hold).verdict.admit


def test_only_affinity_failing_reads_the_node_again() -> None:
    """PRED-10, trap 19: the raise is lost with the old node."""
    wanted = pod(requests={"example.com/gpu": "1"}, **_SELECTOR)
    labelled = node({"example.com/gpu": "0"}, labels={"zone": "a"})
    held = DeviceCounts(allocated={"example.com/gpu": 1}, pod_holds_some=True)
    reads: list[NodeView] = []

    def fresh() -> NodeView:
        reads.append(labelled)
        return labelled

    fit = decide_predicates(
        wanted, [], node({"example.com/gpu": "0"}), held, FeatureGates(), fresh_node=fresh
    )

    assert fit.verdict.reason == "OutOfexample.com/gpu"
    assert len(reads) == 1


@pytest.mark.parametrize(
    ("wanted", "used", "is_free"),
    [
        pytest.param({"hostPort": 80}, {"hostPort": 80}, False, id="same"),
        pytest.param({"hostPort": 80}, {"hostPort": 80, "protocol": "UDP"}, True, id="protocol"),
        pytest.param(
            {"hostPort": 80, "hostIP": "10.0.0.1"},
            {"hostPort": 80, "hostIP": "10.0.0.2"},
            True,
            id="other-address",
        ),
        pytest.param(
            {"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80}, False, id="any-address"
        ),
        pytest.param(
            {"hostPort": 80, "hostIP": "::"},
            {"hostPort": 80, "hostIP": "10.0.0.2"},
            True,
            id="ipv6-any-is-not-special",
        ),
        pytest.param({"containerPort": 80}, {"containerPort": 80}, True, id="no-host-port"),
    ],
)
def test_host_ports(wanted: dict[str, Any], used: dict[str, Any], is_free: bool) -> None:
    """PRED-14."""
    other = pod("o", container={"ports": [used]})

    assert _decide({"container": {"ports": [wanted]}}, node(), other).verdict.admit is is_free


def _term(key: str, operator: str, *values: str, kind: str = "matchExpressions") -> dict[str, Any]:
    return {kind: [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("terms", "is_matched"),
    [
        pytest.param([], False, id="no-term"),
        pytest.param([{}], False, id="empty-term"),
        pytest.param([_term("zone", "In", "a", "b")], True, id="in"),
        pytest.param([_term("zone", "NotIn", "a")], False, id="not-in"),
        pytest.param([_term("none", "NotIn", "a")], True, id="not-in-absent"),
        pytest.param([_term("none", "Exists")], False, id="exists"),
        pytest.param([_term("none", "DoesNotExist")], True, id="does-not-exist"),
        pytest.param([_term("size", "Gt", "09")], True, id="gt"),
        pytest.param([_term("size", "Lt", "10")], False, id="lt-equal"),
        pytest.param([_term("zone", "Gt", "1")], False, id="gt-no-integer"),
        pytest.param([_term("zone", "Near", "a")], False, id="unknown-operator"),
        pytest.param([_term("zone", "In")], False, id="no-values"),
        pytest.param([_term("zone", "NotIn", "not legal")], False, id="illegal-value"),
        pytest.param([_term("-zone", "DoesNotExist")], False, id="illegal-key"),
        pytest.param(
            [_term("zone", "Near", "a"), _term("zone", "In", "a")], True, id="others-can-match"
        ),
        pytest.param([_term("metadata.name", "In", "node-1", kind="matchFields")], True, id="name"),
        pytest.param(
            [_term("metadata.namespace", "NotIn", "x", kind="matchFields")], True, id="other-field"
        ),
        pytest.param(
            [_term("metadata.name", "Exists", kind="matchFields")], False, id="field-operator"
        ),
    ],
)
def test_node_affinity(terms: list[dict[str, Any]], is_matched: bool) -> None:
    """PRED-13."""
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    given = {"affinity": {"nodeAffinity": required}}

    fit = _decide(given, node(labels={"zone": "a", "size": "10"}))

    assert fit.verdict.admit is is_matched
