"""Pods by their bytes: parsed once, forgotten in time."""

from __future__ import annotations

import pytest
from tests.integration.node_document import pod

from numalign.errors import InvalidInput
from numalign.provider.pod_cache import PodCache


def data(number: int) -> bytes:
    return pod(f"pod-{number}").SerializeToString(deterministic=True)


def test_the_same_bytes_are_the_same_pod() -> None:
    cache = PodCache()
    first = cache.decode(data(1))
    assert cache.decode(data(1)) is first
    assert cache.decode(data(2)).uid == "pod-2"


def test_old_pods_are_forgotten() -> None:
    cache = PodCache()
    first = cache.decode(data(0))
    for number in range(1, 40):
        cache.decode(data(number))
    again = cache.decode(data(0))
    assert again is not first
    assert again == first


def test_what_is_no_pod_is_refused() -> None:
    with pytest.raises(InvalidInput):
        PodCache().decode(b"\xff\xff")
