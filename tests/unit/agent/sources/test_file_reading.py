"""Listing manifests and taking in changes, where recordings say nothing (CFG-3 to CFG-6)."""

from __future__ import annotations

import os
from pathlib import Path

from numalign_agent.sources.file.reading import FileEvent, ManifestFiles

TEXT = """\
apiVersion: v1
kind: Pod
metadata: {{name: {}}}
spec: {{containers: [{{name: c, image: i}}]}}
"""


def write(path: Path, name: str) -> Path:
    path.write_text(TEXT.format(name), encoding="utf-8")
    return path


def names(pods: object) -> list[str]:
    assert isinstance(pods, tuple)
    return [pod.name for pod in pods]


def test_pods_come_in_order_of_their_files(tmp_path: Path) -> None:
    write(tmp_path / "b.yaml", "first")
    write(tmp_path / "a.yaml", "second")

    assert names(ManifestFiles(tmp_path, "n").list().pods) == ["second-n", "first-n"]


def test_what_is_no_manifest_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "sub").mkdir()
    (tmp_path / "broken").symlink_to("nowhere")
    (tmp_path / "bad.yaml").write_text("kind: Pod\n", encoding="utf-8")
    write(tmp_path / "good.yaml", "web")
    files = ManifestFiles(tmp_path, "n")

    assert names(files.list().pods) == ["web-n"]
    assert {Path(place).name: why for place, why in files.problems.items()} == {
        "pipe": "is not a regular file",
        "sub": "is not a regular file",
        "broken": f"open {tmp_path}/broken: no such file or directory",
        "bad.yaml": f"{tmp_path}/bad.yaml: couldn't parse as pod(apiVersion is missing), "
        "please check config file",
    }


def test_a_manifest_that_breaks_keeps_its_pod_until_the_next_list(tmp_path: Path) -> None:
    """Trap 3."""
    path = write(tmp_path / "a.yaml", "web")
    files = ManifestFiles(tmp_path, "n")
    files.list()
    path.write_text("broken", encoding="utf-8")

    assert files.change(FileEvent.MODIFY, path).pods is None
    assert list(files.problems) == [str(path)]
    assert files.list().pods == ()


def test_what_an_empty_list_removed_does_not_come_back(tmp_path: Path) -> None:
    """Trap 5: the kubelet brings it back."""
    path = write(tmp_path / "a.yaml", "web")
    files = ManifestFiles(tmp_path, "n")
    files.list()
    path.write_text("broken", encoding="utf-8")
    assert files.list().pods == ()

    other = write(tmp_path / "b.yaml", "other")
    assert names(files.change(FileEvent.ADD, other).pods) == ["other-n"]


def test_a_mended_manifest_is_no_problem_any_more(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("broken", encoding="utf-8")
    files = ManifestFiles(tmp_path, "n")
    files.list()
    assert files.problems

    write(path, "web")
    assert names(files.change(FileEvent.MODIFY, path).pods) == ["web-n"]
    assert files.problems == {}


def test_a_manifest_with_the_name_of_another_is_named(tmp_path: Path) -> None:
    one, other = write(tmp_path / "a.yaml", "same"), write(tmp_path / "b.yaml", "same")
    files = ManifestFiles(tmp_path, "n")

    assert names(files.list().pods) == ["same-n"]
    assert files.problems == {
        str(one): f"pod default/same-n is in {other} too, which counts instead"
    }

    other.unlink()
    assert names(files.list().pods) == ["same-n"]
    assert files.problems == {}


def test_a_name_that_another_file_took_away(tmp_path: Path) -> None:
    one, other = write(tmp_path / "a.yaml", "same"), write(tmp_path / "b.yaml", "same")
    files = ManifestFiles(tmp_path, "n")
    files.list()

    assert files.change(FileEvent.DELETE, one).pods == ()
    gone = files.change(FileEvent.DELETE, other)
    assert gone.pods is None
    assert gone.error == "the pod with key default/same-n doesn't exist in cache"


def test_a_hidden_file_is_not_looked_at(tmp_path: Path) -> None:
    path = write(tmp_path / ".a.yaml", "web")

    assert ManifestFiles(tmp_path, "n").change(FileEvent.ADD, path).pods is None


def test_a_path_that_cannot_be_looked_at_delivers_nothing(tmp_path: Path) -> None:
    path = write(tmp_path / "file", "web") / "below"
    files = ManifestFiles(path, "n")

    reading = files.list()
    assert reading.pods is None
    assert reading.error == f"stat {path}: not a directory"
    assert files.problems == {str(path): reading.error}
