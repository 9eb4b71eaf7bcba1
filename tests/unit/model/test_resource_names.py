from __future__ import annotations

import pytest

from numalign.model.resource_names import (
    is_extended,
    is_hugepages,
    is_native,
    is_overcommittable,
)


@pytest.mark.parametrize(
    ("name", "native", "extended", "hugepages", "overcommittable"),
    [
        pytest.param("cpu", True, False, False, True, id="cpu"),
        pytest.param("hugepages-2Mi", True, False, True, False, id="hugepages"),
        pytest.param("example.com/gpu", False, True, False, False, id="device"),
        pytest.param("kubernetes.io/x", True, False, False, True, id="kubernetes-domain"),
        pytest.param("requests.example.com/x", False, False, False, False, id="quota"),
        pytest.param("example.com/", False, False, False, False, id="no-local-name"),
        pytest.param("Example.com/x", False, False, False, False, id="capital-domain"),
        pytest.param("a/b/c", False, False, False, False, id="two-slashes"),
        pytest.param("e.com/" + "x" * 64, False, False, False, False, id="long-local-name"),
        pytest.param("a" * 245 + "/x", False, False, False, False, id="long-domain"),
        pytest.param("a" * 244 + "/x", False, True, False, False, id="longest-domain"),
    ],
)
def test_names(
    name: str, native: bool, extended: bool, hugepages: bool, overcommittable: bool
) -> None:
    assert is_native(name) is native
    assert is_extended(name) is extended
    assert is_hugepages(name) is hugepages
    assert is_overcommittable(name) is overcommittable
