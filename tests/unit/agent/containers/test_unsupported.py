"""What is told of that has no effect."""

from __future__ import annotations

from tests.unit.agent.made import container, pod

from numalign_agent.containers.unsupported import not_given


def test_a_plain_pod_gets_all_that_it_asks_for() -> None:
    assert not_given(pod("p", container("a"), volumes=[], securityContext={})) == []


def test_every_field_is_named() -> None:
    of = pod(
        "p",
        container("a"),
        container("b", volumeMounts=[{"name": "v"}], lifecycle={"preStop": {}}),
        init=(container("i", tty=True),),
        volumes=[{"name": "v"}],
        runtimeClassName="gvisor",
    )

    assert not_given(of) == [
        "spec.volumes",
        "spec.runtimeClassName",
        "spec.initContainers[0].tty",
        "spec.containers[1].volumeMounts",
        "spec.containers[1].lifecycle",
    ]
