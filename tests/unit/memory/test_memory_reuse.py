"""Memory of finished init containers."""

from __future__ import annotations

from tests.unit.memory.memory_builders import GI, block, container, hint, node, pod

from numalign.memory.reuse import shrink_init_blocks, update_reusable
from numalign.model.numa_mask import mask_of
from numalign.model.pod import Container, Pod


def gib(*sizes: int) -> list[int]:
    return [size * GI for size in sizes]


def reusable_after_each(whole: Pod) -> list[tuple[int, int]]:
    """Reserved and reusable Gi on node 0 after each container, all under the hint {0}."""
    host = node(1)
    seen = []
    for one in whole.all_containers():
        assert host.allocate(whole, one.name, hint(0)) is None
        left = host.state.reusable.get(whole.uid, {}).get((mask_of((0,)), "memory"), 0)
        seen.append((host.reserved()[0] // GI, left // GI))
    return seen


def test_sidecars_consume_but_never_give() -> None:
    """MEM-T19."""
    whole = pod(
        "p",
        container("i", "4Gi", init=True),
        container("s", "3Gi", sidecar=True),
        container("j", "5Gi", init=True),
        container("a", "6Gi"),
    )

    assert reusable_after_each(whole) == [(4, 4), (4, 1), (8, 5), (9, 0)]


def test_stored_blocks_shrink_but_assignments_do_not() -> None:
    """MEM-T8."""
    host = node(1)
    whole = pod(
        "p",
        container("i", "3Gi", init=True),
        container("j", "5Gi", init=True),
        container("a", "4Gi"),
        container("b", "2Gi"),
    )
    for one in whole.all_containers():
        assert host.allocate(whole, one.name, hint(0)) is None

    assert host.sizes("p") == {"i": [0], "j": [0], "a": gib(4), "b": gib(2)}
    assert host.reserved() == gib(6)
    assert [m.assignments for m in host.state.machine.values()] == [4]


def test_reuse_needs_the_very_same_mask() -> None:
    """MEM-T7."""
    whole = pod("p", container("i", "12Gi", init=True), container("a", "4Gi"))
    same, other = node(2), node(2)
    for host in (same, other):
        assert host.allocate(whole, "i", hint(0, 1)) is None
    assert same.allocate(whole, "a", hint(0, 1)) is None

    assert same.sizes("p") == {"i": gib(8), "a": gib(4)}
    assert sum(same.reserved()) == 12 * GI
    # Node 1 has 6Gi free, and none of the init container's bytes count for it alone.
    assert other.allocate(whole, "a", hint(1)) is None
    assert other.sizes("p") == {"i": gib(12), "a": gib(4)}
    assert sum(other.reserved()) == 16 * GI


def test_reusable_memory_does_not_satisfy_but_extends() -> None:
    """MEM-34 asks for free memory alone; MEM-35 then finds the same mask with what is reusable."""
    host = node(1)
    whole = pod("p", container("i", "9Gi", init=True), container("a", "9Gi"))
    assert host.allocate(whole, "i", hint(0)) is None

    assert host.allocate(whole, "a", hint(0)) is None
    assert host.sizes("p") == {"i": [0], "a": gib(9)}


def test_another_pods_bookkeeping_drops_what_was_reusable() -> None:
    host = node(2)
    first = pod("p", container("i", "4Gi", init=True), container("a", "4Gi"))
    assert host.allocate(first, "i", hint(0)) is None
    assert host.allocate(pod("q", container("a", "1Gi")), "a", hint(1)) is None
    assert host.state.reusable == {}
    assert host.allocate(first, "a", hint(0)) is None

    assert host.reserved() == gib(8, 1)


def test_the_ledger_comes_back_as_containers_are_allocated_again() -> None:
    """MEM-76: after a restart the shrunk sizes count."""
    host = node(1)
    whole = pod("p", container("i", "4Gi", init=True), container("a", "1Gi"))
    for name in ("i", "a"):
        assert host.allocate(whole, name, hint(0)) is None
    host.forget_reuse()
    assert host.allocate(whole, "i", hint(0)) is None

    assert host.state.reusable == {"p": {(mask_of((0,)), "memory"): 3 * GI}}
    assert host.reserved() == gib(4)


def test_the_larger_of_two_init_containers_can_be_reused() -> None:
    key = (mask_of((0,)), "memory")
    init = Container(name="i", is_init=True)
    after = update_reusable({key: 5}, init, (block(3, 0),))

    assert after == {key: 5}
    assert update_reusable(after, init, (block(8, 0),)) == {key: 8}
    assert update_reusable(after, Container(name="a"), (block(9, 0),)) == {}


def test_blocks_shrink_in_order_up_to_the_container_itself() -> None:
    whole = pod(
        "p",
        container("i", "1", init=True),
        container("s", "1", sidecar=True),
        container("j", "1", init=True),
        container("k", "1", init=True),
    )
    stored = {
        "i": (block(2, 0), block(7, 0, resource="hugepages-2Mi")),
        "s": (block(4, 0),),
        "j": (block(5, 0, 1),),
        "k": (block(9, 0),),
    }
    shrunk = shrink_init_blocks(stored, whole, whole.container("k"), (block(9, 0),))

    assert shrunk == {
        "i": (block(0, 0), block(7, 0, resource="hugepages-2Mi")),
        "s": (block(4, 0),),
        "j": (block(5, 0, 1),),
        "k": (block(9, 0),),
    }
