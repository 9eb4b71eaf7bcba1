"""Which service is spoken with a driver (DRA-5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from numalign.dra.drivers import check_plugin
from numalign.dra.values import ClaimProblem
from numalign.dra.versions import DriverService, chosen_service


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        pytest.param(["v1beta1.DRAPlugin"], DriverService.V1BETA1, id="old"),
        pytest.param(["v1.DRAPlugin", "v1beta1.DRAPlugin"], DriverService.V1, id="both"),
        pytest.param(["v1beta1.DRAPlugin", "x", "v1.DRAPlugin"], DriverService.V1, id="DRA-T1"),
    ],
)
def test_the_better_one_whatever_the_order(offered: list[str], chosen: DriverService) -> None:
    assert chosen_service(offered) is chosen


@pytest.mark.parametrize(
    ("offered", "cause"),
    [
        pytest.param([], "empty list of supported gRPC services (aka supported versions)", id="0"),
        pytest.param(
            ["a", "b"],
            'none of services supported by the plugin (["a" "b"]) are supported by the kubelet '
            '(["v1.DRAPlugin" "v1beta1.DRAPlugin"])',
            id="2",
        ),
    ],
)
def test_none_of_ours(offered: list[str], cause: str) -> None:
    with pytest.raises(ClaimProblem) as problem:
        check_plugin("d", Path("/x.sock"), offered)

    assert str(problem.value) == (
        "invalid supported gRPC versions of DRA driver plugin d at endpoint /x.sock: " + cause
    )


def test_a_driver_without_a_name() -> None:
    with pytest.raises(ClaimProblem, match="DRA driver name is empty"):
        check_plugin("", Path("/x.sock"), ["v1.DRAPlugin"])
