from __future__ import annotations

import pytest

from numalign.admission.pod_resources.listing import (
    app_containers,
    find_pod,
    not_found,
    shown_containers,
)
from numalign.admission.pod_resources.values import Kind, ListedContainer, ListedPod
from numalign.model.ids import PodUid


def listed(name: str = "p", namespace: str = "ns", *containers: ListedContainer) -> ListedPod:
    return ListedPod(uid=PodUid(name), name=name, namespace=namespace, containers=containers)


POD = listed(
    "p",
    "ns",
    ListedContainer("i", Kind.INIT),
    ListedContainer("s2", Kind.SIDECAR),
    ListedContainer("j", Kind.INIT),
    ListedContainer("s1", Kind.SIDECAR),
    ListedContainer("b", Kind.APP),
    ListedContainer("a", Kind.APP),
)


def test_sidecars_in_init_order_come_before_app_containers() -> None:
    assert shown_containers(POD) == ("s2", "s1", "b", "a")


def test_the_first_version_shows_app_containers_alone() -> None:
    assert app_containers(POD) == ("b", "a")


@pytest.mark.parametrize(
    ("namespace", "name", "found"),
    [
        pytest.param("ns", "p", True, id="both"),
        pytest.param("ns", "q", False, id="other name"),
        pytest.param("other", "p", False, id="other namespace"),
    ],
)
def test_find_pod(namespace: str, name: str, found: bool) -> None:
    pods = (listed("x", "ns"), POD)

    assert (find_pod(pods, namespace, name) is POD) == found


def test_not_found_says_it_in_the_kubelets_words() -> None:
    assert not_found("ns", "p") == "pod p in namespace ns not found"
