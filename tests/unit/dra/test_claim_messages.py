"""What pods say about claims, and what an agent says of them."""

from __future__ import annotations

import pytest

from numalign.dra.messages import fetched_claims, pod_claims
from numalign.dra.values import ClaimKey, Consumer, FetchedClaim, PodClaim, Reference
from numalign.errors import InvalidInput
from numalign.kube.pod_json import pod_from_json
from numalign.v1 import claims_pb2 as cl

GPU = "example.com/gpu"
CLASS = "deviceclass.resource.kubernetes.io/fast"


def container(name: str, *references: dict[str, str], **amounts: str) -> dict[str, object]:
    asked = {key.replace("gpu", GPU).replace("fast", CLASS): text for key, text in amounts.items()}
    resources = {"requests": asked, "limits": asked, "claims": list(references)}
    return {"name": name, "resources": resources}


POD = pod_from_json(
    {
        "metadata": {"name": "p", "namespace": "ns", "uid": "u"},
        "spec": {
            "resourceClaims": [
                {"name": "k0", "resourceClaimName": "c0"},
                {"name": "k1", "resourceClaimTemplateName": "t"},
                {"name": "k2"},
            ],
            "initContainers": [container("i", {"name": "k1"})],
            "containers": [
                container("a", {"name": "k0", "request": "r"}, {"name": "k0"}, gpu="1", fast="1"),
                container("b", gpu="0"),
            ],
        },
        "status": {
            "resourceClaimStatuses": [{"name": "k1", "resourceClaimName": "made"}, {"name": "k9"}],
            "extendedResourceClaimStatus": {
                "resourceClaimName": "ext",
                "requestMappings": [
                    {"containerName": "a", "resourceName": GPU, "requestName": "e0"},
                    {"containerName": "a", "resourceName": CLASS, "requestName": "e1"},
                    {"containerName": "a", "resourceName": "cpu", "requestName": "e2"},
                    {"containerName": "b", "resourceName": GPU, "requestName": "e3"},
                ],
            },
        },
    }
).SerializeToString()


def test_a_pod() -> None:
    pod = pod_claims(POD)

    assert pod.entries == (
        PodClaim(name="k0", claim_name="c0"),
        PodClaim(name="k1", template="t"),
        PodClaim(name="k2"),
    )
    assert pod.statuses == {"k1": "made", "k9": None}
    assert pod.extended_claim == "ext"
    assert [(c.name, c.references, c.extended) for c in pod.containers] == [
        ("i", (Reference("k1", ""),), ()),
        ("a", (Reference("k0", "r"), Reference("k0", "")), ("e0", "e1")),
        ("b", (), ()),
    ]


def test_without_extended_resources() -> None:
    pod = pod_claims(POD, extended_resources=False)

    assert pod.extended_claim is None
    assert [c.extended for c in pod.containers] == [(), (), ()]


def message(name: str = "c1", uid: str = "u1") -> cl.FetchedClaim:
    claim = cl.ResourceClaim(namespace="ns", name=name, uid=uid)
    claim.reserved_for.add(resource="pods", name="p", uid="x")
    for driver in ("d", "e", "d"):
        claim.allocation.devices.add(driver=driver)
    return cl.FetchedClaim(name="c1", claim=claim)


def test_claims_and_errors() -> None:
    assert fetched_claims([message(), cl.FetchedClaim(name="c2", error="secret")]) == {
        "c1": FetchedClaim(
            key=ClaimKey("ns", "c1"),
            uid="u1",  # type: ignore[arg-type]
            reserved_for=(Consumer(api_group="", resource="pods", uid="x"),),
            drivers=("d", "e"),
        ),
        "c2": "secret",
    }


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        pytest.param(cl.FetchedClaim(error="x"), "claims[0].name: Required value", id="nameless"),
        pytest.param(
            cl.FetchedClaim(name="c1"),
            "claims[0]: has neither a claim nor an error",
            id="nothing",
        ),
        pytest.param(message(uid=""), "claims[0].claim.uid: Required value", id="uid"),
        pytest.param(message(name="c2"), 'claims[0].claim.name: is "c2", not "c1"', id="another"),
    ],
)
def test_bad_claims(claim: cl.FetchedClaim, text: str) -> None:
    with pytest.raises(InvalidInput) as wrong:
        fetched_claims([claim])

    assert str(wrong.value) == text
