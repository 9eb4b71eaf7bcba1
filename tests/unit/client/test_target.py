"""Addresses of the Admission service."""

from pathlib import Path
from typing import Any

import pytest

from numalign.config.defaults import default_directories
from numalign_client.target import default_socket, target_of


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        pytest.param("/run/a.sock", "unix:///run/a.sock", id="path"),
        pytest.param(Path("/run/a.sock"), "unix:///run/a.sock", id="path-object"),
        pytest.param("unix:///run/a.sock", "unix:///run/a.sock", id="target"),
        pytest.param("localhost:50051", "localhost:50051", id="tcp"),
    ],
)
def test_target(address: Any, expected: Any) -> None:
    assert target_of(address) == expected


def test_a_relative_path_is_taken_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert target_of("a.sock") == f"unix://{tmp_path}/a.sock"


ENVIRONMENTS: dict[str, dict[str, str]] = {
    "runtime-directory": {"HOME": "/home/a", "XDG_RUNTIME_DIR": "/run/user/7"},
    "relative-runtime-directory": {"HOME": "/home/a", "XDG_RUNTIME_DIR": "run"},
    "state-directory": {"HOME": "/home/a", "XDG_STATE_HOME": "/s"},
    "relative-state-directory": {"HOME": "/home/a", "XDG_STATE_HOME": "s"},
    "home": {"HOME": "/home/a"},
    "trailing-slash": {"XDG_RUNTIME_DIR": "/run/user/7/"},
}


@pytest.mark.parametrize("is_root", [False, True], ids=["user", "root"])
@pytest.mark.parametrize("env", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_the_default_is_where_the_command_looks(env: dict[str, str], is_root: bool) -> None:
    runtime = default_directories(env, is_root).runtime
    assert runtime is not None

    assert Path(default_socket(env, is_root=is_root)) == runtime / "admission.sock"


@pytest.mark.parametrize("is_root", [False, True], ids=["user", "root"])
def test_the_environment_names_another(is_root: bool) -> None:
    env = {"HOME": "/home/a", "NUMALIGN_SOCKET": "unix:///n.sock"}

    assert default_socket(env, is_root=is_root) == "unix:///n.sock"


def test_an_environment_without_a_place() -> None:
    with pytest.raises(ValueError, match="must be given, or NUMALIGN_SOCKET set"):
        default_socket({"HOME": "relative"}, is_root=False)


def test_an_empty_address_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        target_of("")
