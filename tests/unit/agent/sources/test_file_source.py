"""A directory that is watched (CFG-2, CFG-6, CFG-7): the periodic list is too far away to help."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest
import watchfiles
from tests.unit.agent.sources.collecting import running
from tests.unit.agent.sources.test_file_reading import write

from numalign_agent.sources.file.source import FileSource


async def test_files_are_noticed_as_they_come_change_and_go(tmp_path: Path) -> None:
    directory = tmp_path / "manifests"
    directory.mkdir()
    write(directory / "a.yaml", "one")
    source = FileSource(directory, "n", every=3600)

    async with running(source) as delivered:
        await delivered.until(lambda: delivered.names == ["one-n"])

        write(tmp_path / "new", "two").rename(directory / "b.yaml")
        await delivered.until(lambda: delivered.names == ["one-n", "two-n"])

        (directory / "b.yaml").write_text("broken", encoding="utf-8")
        await delivered.until(lambda: list(source.problems()) == [str(directory / "b.yaml")])
        assert delivered.names == ["one-n", "two-n"]

        write(directory / "b.yaml", "three")
        await delivered.until(lambda: delivered.names is not None and "three-n" in delivered.names)
        assert source.problems() == {}

        (directory / "a.yaml").unlink()
        await delivered.until(
            lambda: delivered.names is not None and "one-n" not in delivered.names
        )


async def test_a_directory_that_is_made_again_is_watched_again(tmp_path: Path) -> None:
    """Trap 4: the kubelet's watch does not come back."""
    directory = tmp_path / "manifests"
    source = FileSource(directory, "n", every=3600)

    async with running(source) as delivered:
        await delivered.until(lambda: delivered.names == [])
        assert source.problems() == {str(directory): "path does not exist, ignoring"}

        directory.mkdir()
        write(directory / "a.yaml", "one")
        await delivered.until(lambda: delivered.names == ["one-n"])

        (directory / "a.yaml").unlink()
        directory.rmdir()
        await delivered.until(lambda: delivered.names == [])

        directory.mkdir()
        await delivered.until(lambda: not source.problems())
        write(directory / "b.yaml", "two")
        await delivered.until(lambda: delivered.names == ["two-n"])


async def test_a_single_file_that_is_replaced(tmp_path: Path) -> None:
    path = write(tmp_path / "web.yaml", "one")
    source = FileSource(path, "n", every=3600)

    async with running(source) as delivered:
        await delivered.until(lambda: delivered.names == ["one-n"])

        write(tmp_path / "new", "two").rename(path)
        await delivered.until(lambda: delivered.names == ["two-n"])

        path.write_text("broken", encoding="utf-8")
        await delivered.until(lambda: bool(source.problems()))
        assert delivered.names == ["two-n"]

        path.unlink()
        await delivered.until(lambda: delivered.names == [])


async def test_without_a_watch_the_list_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Refusing:
        def __init__(self, *_: object, **__: object) -> None:
            pass

        def __aiter__(self) -> Refusing:
            return self

        async def __anext__(self) -> NoReturn:
            raise RuntimeError("too many watches")

    monkeypatch.setattr(watchfiles, "awatch", Refusing)
    async with running(FileSource(tmp_path, "n", every=0.05)) as delivered:
        await delivered.until(lambda: delivered.names == [])
        write(tmp_path / "a.yaml", "one")
        await delivered.until(lambda: delivered.names == ["one-n"])

    assert "too many watches" in capsys.readouterr().err
