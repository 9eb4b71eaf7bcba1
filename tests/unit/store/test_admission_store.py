"""The Topology Manager's rows and its revision."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from numalign.errors import StateError
from numalign.model.ids import AdmissionId, PodUid
from numalign.store.admission_store import (
    AdmissionRow,
    AdmissionStore,
    ContainerRow,
    StoredAdmissions,
)
from numalign.store.database import Database


def row(name: str) -> AdmissionRow:
    return AdmissionRow(
        pod_uid=PodUid(name),
        admission_id=AdmissionId(f"admission-{name}"),
        owner="agent",
        pod=b"\x0a\x00",
        record=b"{}",
        config_generation=3,
    )


def container(name: str, pod: str) -> ContainerRow:
    return ContainerRow(container_id=name, pod_uid=PodUid(pod), name="app")


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = Database.open(tmp_path, "topology", report=print)
    yield database
    await database.close()


@pytest.fixture
def store(database: Database) -> AdmissionStore:
    return AdmissionStore(database)


async def test_nothing_is_stored_at_first(store: AdmissionStore) -> None:
    assert await store.load_all() == StoredAdmissions(admissions=(), containers=(), revision=0)


async def test_commits_come_back_with_their_revisions(store: AdmissionStore) -> None:
    assert await store.commit(row("b")) == 1
    assert await store.commit(row("a")) == 2
    found = await store.load_all()

    assert found.admissions == (replace(row("b"), revision=1), replace(row("a"), revision=2))
    assert found.revision == 2


async def test_a_record_begins_where_it_is_told_to(store: AdmissionStore) -> None:
    assert (await store.begin(1000)).revision == 1000
    assert (await store.begin(2000)).revision == 1000
    assert await store.commit(row("a")) == 1001
    assert (await store.begin(2000)).admissions == (replace(row("a"), revision=1001),)


async def test_a_pod_committed_again_replaces_its_row(store: AdmissionStore) -> None:
    await store.commit(row("a"))
    await store.add_container(container("c", "a"))
    resized = replace(row("a"), admission_id=AdmissionId("resize"), record=b"[1]")
    revision = await store.commit(resized)
    found = await store.load_all()

    assert found.admissions == (replace(resized, revision=revision),)
    assert found.containers == (container("c", "a"),)


async def test_a_pod_committed_again_keeps_its_place(store: AdmissionStore) -> None:
    for name in ("a", "b"):
        await store.commit(row(name))
    await store.commit(replace(row("a"), admission_id=AdmissionId("resize")))

    assert [found.pod_uid for found in (await store.load_all()).admissions] == ["a", "b"]


async def test_an_admission_id_belongs_to_one_pod(store: AdmissionStore) -> None:
    await store.commit(row("a"))
    with pytest.raises(StateError, match=r"UNIQUE constraint failed: admissions\.admission_id"):
        await store.commit(replace(row("b"), admission_id=row("a").admission_id))
    assert (await store.load_all()).revision == 1


async def test_pods_are_committed_together_each_with_its_revision(store: AdmissionStore) -> None:
    assert await store.commit_all([row("b"), row("a")]) == (1, 2)
    found = await store.load_all()

    assert found.admissions == (replace(row("b"), revision=1), replace(row("a"), revision=2))


async def test_of_pods_that_are_committed_together_all_are_or_none(store: AdmissionStore) -> None:
    await store.commit(row("a"))
    with pytest.raises(StateError, match="UNIQUE constraint failed"):
        await store.commit_all(
            [row("b"), replace(row("c"), admission_id=row("a").admission_id), row("d")]
        )

    found = await store.load_all()
    assert [each.pod_uid for each in found.admissions] == ["a"]
    assert found.revision == 1


async def test_deleted_pods_take_their_containers_along(store: AdmissionStore) -> None:
    for name in "abc":
        await store.commit(row(name))
        await store.add_container(container(f"c-{name}", name))
    revision = await store.delete([PodUid("a"), PodUid("c"), PodUid("unknown")])
    found = await store.load_all()

    assert [r.pod_uid for r in found.admissions] == ["b"]
    assert found.containers == (container("c-b", "b"),)
    assert revision == found.revision == 7


async def test_containers_come_and_go(store: AdmissionStore) -> None:
    assert await store.add_container(container("c", "a")) == 1
    assert await store.remove_container("c")
    assert not await store.remove_container("c")
    assert await store.load_all() == StoredAdmissions(admissions=(), containers=(), revision=2)


async def test_the_revision_goes_on_after_a_restart(tmp_path: Path) -> None:
    database = Database.open(tmp_path / "r", "topology", report=print)
    store = AdmissionStore(database)
    await store.commit(row("a"))
    await store.delete([PodUid("a")])
    await database.close()
    database = Database.open(tmp_path / "r", "topology", report=print)
    store = AdmissionStore(database)

    assert await store.advance() == 3
    assert await store.commit(row("a")) == 4
    await database.close()
