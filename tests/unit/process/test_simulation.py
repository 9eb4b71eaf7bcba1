"""What a copy of a node has of it, and what is said of the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from numalign.errors import ConfigError, Unavailable
from numalign.kube.pod_json import pod_from_json
from numalign.process import simulation
from numalign.process.simulation import copy_of, inventory_of
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import types_pb2 as pb

ALONE = "no Node object is given: the Topology Manager alone decides"


def devices() -> hp.DeviceState:
    state = hp.DeviceState()
    gpus = state.resources.add(resource="example.com/gpu")
    gpus.devices.add(id="a", healthy=True, has_topology=True, numa_nodes=[1])
    gpus.devices.add(id="b", healthy=False)
    return state


@pytest.mark.parametrize(
    ("section", "note"),
    [
        pytest.param({}, None, id="nothing"),
        pytest.param(
            {"providers": [{"name": "licences", "endpoint": "/x.sock"}]},
            "hint provider licences is not asked",
            id="provider",
        ),
        pytest.param(
            {"providersRegistry": "/run/providers"},
            "hint providers that are found by their sockets are not asked",
            id="found-providers",
        ),
        pytest.param(
            {"admission": {"handlers": [{"name": "quota", "endpoint": "/x.sock"}]}},
            "admit handler quota is not asked",
            id="handler",
        ),
        pytest.param(
            {"devicePlugins": {"mode": "host"}},
            "device plugins are not asked: devices are chosen by their ids",
            id="plugins",
        ),
        pytest.param(
            {"compatibility": "kubelet"},
            "placement is the kubelet's, the faults of its lifecycle are left out",
            id="kubelet",
        ),
        pytest.param(
            {"dra": {"enabled": True}},
            "resource claims are not prepared: pods are judged without them",
            id="claims",
        ),
    ],
)
def test_each_thing_that_is_left_out_is_named(section: dict[str, Any], note: str | None) -> None:
    copy = copy_of({"numalign": section}, (), None)
    assert copy.notes == ((note, ALONE) if note else (ALONE,))
    kept = copy.document["numalign"]
    assert kept["secondOwner"] == "tolerate"
    assert not {"providers", "listen", "endpoints", "sockets", "dra", "metrics"} & kept.keys()
    assert "providersRegistry" not in kept
    assert "handlers" not in kept["admission"]


@pytest.mark.parametrize(
    ("configuration", "said"),
    [
        ({"numalign": "x"}, "numalign: must be a mapping, not 'x'"),
        ({"numalign": {"devicePlugins": 3}}, "devicePlugins: must be a mapping, not 3"),
        ({"numalign": {"dra": [1]}}, r"dra: must be a mapping, not \[1\]"),
        ({"numalign": {"admission": "x"}}, "admission: must be a mapping, not 'x'"),
        ({"numalign": {"providers": {"a": 1}}}, "providers: must be a list of mappings, not "),
        ({"numalign": {"admission": {"handlers": [1]}}}, "handlers: must be a list of mappings"),
    ],
    ids=["section", "plugins", "claims", "admission", "providers", "handlers"],
)
def test_a_configuration_that_is_none_is_named(configuration: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        copy_of(configuration, (), None)


def test_a_provider_that_is_configured_and_asked_is_named_once() -> None:
    configuration = {"numalign": {"providers": [{"name": "a", "endpoint": "/a.sock"}]}}
    copy = copy_of(configuration, (), None, registered=["a", "b"])
    assert copy.notes == (
        "hint provider a is not asked",
        "hint provider b is not asked",
        ALONE,
    )


def test_devices_of_plugins_become_a_list() -> None:
    configuration = {"numalign": {"devicePlugins": {"mode": "host"}}}
    copy = copy_of(configuration, (), inventory_of(devices()))
    assert copy.document["numalign"]["devices"] == [
        {
            "resource": "example.com/gpu",
            "devices": [
                {"id": "a", "healthy": True, "numa_nodes": [1]},
                {"id": "b", "healthy": False},
            ],
        }
    ]


def test_a_node_object_takes_the_place_of_the_note(tmp_path: Path) -> None:
    copy = copy_of({"numalign": {}}, (), None, tmp_path / "node.yaml")
    assert copy.notes == ()
    assert copy.document["numalign"]["admission"] == {"node": str(tmp_path / "node.yaml")}


async def test_a_copy_that_cannot_put_its_books_in_order_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(simulation, "_LONGEST_SECONDS", 0.5)
    core = {"id": 0, "socket_id": 0, "threads": [0, 1]}
    node = {"id": 0, "memory_bytes": 1 << 30, "cores": [core]}
    configuration = {
        "topologyManagerPolicy": "restricted",
        "cpuManagerPolicy": "static",
        "reservedSystemCPUs": "0",
        "numalign": {"machine": {"numa_nodes": [node]}},
    }
    record = pb.AdmissionRecord(pod_uid="u", namespace="default", name="p")
    record.allocations.add(container="c", cpus="no list")
    pod = pod_from_json(
        {
            "metadata": {"name": "p", "namespace": "default", "uid": "u"},
            "spec": {"containers": [{"name": "c"}]},
        }
    )
    copy = copy_of(configuration, [(record, pod.SerializeToString())], None)

    with pytest.raises(Unavailable, match="the copy of the node was not ready within"):
        await simulation.simulate(copy, (), pb.EXPLAIN_LEVEL_NONE)
