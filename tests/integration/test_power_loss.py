"""The power fails: a provider's file is as it was some time ago, the record's is whole.

What a provider writes in an admission is not synced where the Topology Manager's record can give
it back, so after a loss of power its file may end earlier than the record. Every file that was
there at some time is such an end; here it is the one before all of the load.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.integration.crash_plans import PROVIDER_NAMES
from tests.integration.world import World, open_world

ROUNDS = 2


@pytest.mark.processes
@pytest.mark.parametrize(
    "behind",
    [
        *(pytest.param((name,), id=name) for name in PROVIDER_NAMES),
        pytest.param(PROVIDER_NAMES, id="all-providers"),
    ],
)
async def test_what_was_not_synced_comes_back_from_the_record(
    tmp_path: Path, behind: tuple[str, ...]
) -> None:
    given_back = 0
    async with open_world(together=False, seed=len(behind)) as world:
        for number in range(ROUNDS):
            kept = tmp_path / str(number)
            await _keep_files(world, behind, kept)
            await world.load_until_death(*world.processes, delay=0.5)
            for name in behind:
                _put_back(world, name, kept)
            for process in world.processes:
                await world.restart(process)
            await world.ready()
            for name in behind:
                given_back += world.forgive_losses(name)
            assert await world.judge() == [], world.log_tail()
    assert given_back


async def _keep_files(world: World, names: tuple[str, ...], kept: Path) -> None:
    for name in names:
        await world.stop(name)
        _keep(world, name, kept)
        await world.restart(name)
    await world.ready()


def _keep(world: World, name: str, kept: Path) -> None:
    kept.mkdir(exist_ok=True)
    for path in _files(world, name):
        shutil.copy(path, kept)


def _put_back(world: World, name: str, kept: Path) -> None:
    for path in _files(world, name):
        path.unlink()
    for path in kept.glob(f"{name}.db*"):
        shutil.copy(path, world.directory / "state")


def _files(world: World, name: str) -> list[Path]:
    return list((world.directory / "state").glob(f"{name}.db*"))
