"""The sample device plugin: what its files say, and which devices it prefers."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.device_plugin.devices import FileDevice, preferred, read_devices
from numalign.kube.deviceplugin.v1beta1 import api_pb2 as dp


def test_what_files_say(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("numa_nodes: 0, 1\nhealth: Sick\nnode: /dev/fuse\n")
    (tmp_path / "b").write_text("\ncdi: vendor.com/x=b\n")
    (tmp_path / "c").write_text("numa_nodes:\n")
    (tmp_path / ".hidden").touch()
    (tmp_path / "below").mkdir()

    assert read_devices(tmp_path) == {
        "a": FileDevice(
            id="a", path=tmp_path / "a", numa_nodes=(0, 1), health="Sick", node="/dev/fuse"
        ),
        "b": FileDevice(id="b", path=tmp_path / "b", cdi="vendor.com/x=b"),
        "c": FileDevice(id="c", path=tmp_path / "c", numa_nodes=()),
    }


def test_topology_as_it_is_listed(tmp_path: Path) -> None:
    path = tmp_path / "a"

    assert FileDevice(id="a", path=path, numa_nodes=(1,)).message() == dp.Device(
        ID="a", health="Healthy", topology=dp.TopologyInfo(nodes=[dp.NUMANode(ID=1)])
    )
    assert not FileDevice(id="a", path=path).message().HasField("topology")
    assert FileDevice(id="a", path=path, numa_nodes=()).message().HasField("topology")


@pytest.mark.parametrize("text", ["hello\n", "color: red\n"])
def test_a_file_that_is_not_understood(tmp_path: Path, text: str) -> None:
    (tmp_path / "a").write_text(text)

    with pytest.raises(ValueError, match="is not understood"):
        read_devices(tmp_path)


@pytest.mark.parametrize(
    ("available", "must", "size", "expected"),
    [
        pytest.param("abcde", "", 2, ["c", "d"], id="node-with-the-most"),
        pytest.param("abcde", "a", 2, ["a", "b"], id="node-of-what-must-be"),
        pytest.param("abf", "", 3, ["a", "b", "f"], id="without-topology-last"),
        pytest.param("ab", "ab", 2, ["a", "b"], id="all-must-be"),
        pytest.param("ax", "", 2, ["a", "x"], id="unknown-ids"),
    ],
)
def test_preferred(available: str, must: str, size: int, expected: list[str]) -> None:
    nodes = {"a": (0,), "b": (0,), "c": (1,), "d": (1,), "e": (1,), "f": None}
    devices = {
        id_: FileDevice(id=id_, path=Path(id_), numa_nodes=numa) for id_, numa in nodes.items()
    }

    assert preferred(devices, available, must, size) == expected
