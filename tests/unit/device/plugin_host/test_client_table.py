"""Who is the plugin of a resource: the kubelet's table with its faults, and the safe one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from numalign.device.plugin_host.client_table import KubeletTable, SafeTable

R = "example.com/gpu"


@dataclass(frozen=True)
class Client:
    name: str

    @property
    def socket(self) -> Path:
        return Path(f"/dp/{self.name}")


OLD, NEW = Client("old"), Client("new")
KUBELET = pytest.param(KubeletTable, id="kubelet")
SAFE = pytest.param(SafeTable, id="safe")


def connected(table: Any, client: Client) -> Client | None:
    table.connecting(R, client)
    replaced: Client | None = table.connected(R, client)
    return replaced


@pytest.mark.parametrize("kind", [KUBELET, SAFE])
def test_one_plugin_comes_and_goes(kind: type[Any]) -> None:
    table = kind()

    assert connected(table, OLD) is None
    assert table.ended(R, OLD) is OLD
    assert table.ended(R, OLD) is None


@pytest.mark.parametrize(
    ("kind", "replaced", "hit"),
    [
        pytest.param(KubeletTable, None, NEW, id="kubelet-DEV-T7"),
        pytest.param(SafeTable, OLD, None, id="safe"),
    ],
)
def test_the_late_end_of_a_replaced_plugin(
    kind: type[Any], replaced: Client | None, hit: Client | None
) -> None:
    table = kind()
    connected(table, OLD)

    assert connected(table, NEW) is replaced
    assert table.ended(R, OLD) is hit


@pytest.mark.parametrize(
    ("kind", "ended"),
    [
        pytest.param(KubeletTable, None, id="kubelet-DEV-T8"),
        pytest.param(SafeTable, OLD, id="safe"),
    ],
)
def test_a_newcomer_that_cannot_be_reached(kind: type[Any], ended: Client | None) -> None:
    table = kind()
    connected(table, OLD)
    table.connecting(R, NEW)
    table.failed(R, NEW)

    assert table.ended(R, OLD) is ended


@pytest.mark.parametrize(
    ("kind", "hit"),
    [pytest.param(KubeletTable, NEW, id="kubelet-DEV-8"), pytest.param(SafeTable, None, id="safe")],
)
def test_the_socket_of_a_predecessor_is_removed(kind: type[Any], hit: Client | None) -> None:
    table = kind()
    connected(table, OLD)
    connected(table, NEW)

    assert table.removed(R, OLD.socket) is hit


@pytest.mark.parametrize("kind", [KUBELET, SAFE])
def test_its_own_socket_is_removed(kind: type[Any]) -> None:
    table = kind()
    connected(table, OLD)

    assert table.removed(R, OLD.socket) is OLD
    assert table.removed(R, OLD.socket) is None


@pytest.mark.parametrize("kind", [KUBELET, SAFE])
def test_clear(kind: type[Any]) -> None:
    table = kind()
    connected(table, OLD)

    assert table.clear() == [(R, OLD)]
    assert table.clear() == []
