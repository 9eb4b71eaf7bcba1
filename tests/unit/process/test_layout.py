"""One state file for all services, or one for each: the other way is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from numalign.config.settings import Service
from numalign.errors import StateError
from numalign.process.layout import KEEPING, refuse_other_layout, state_path


@pytest.mark.parametrize("service", [pytest.param(s, id=s.value) for s in KEEPING])
def test_all_in_one_process_refuse_the_files_of_single_services(
    tmp_path: Path, service: Service
) -> None:
    state_path(tmp_path, service).touch()

    with pytest.raises(StateError, match=f"{service.value}.db is that of services in processes"):
        refuse_other_layout(tmp_path, together=True)
    refuse_other_layout(tmp_path, together=False)


def test_single_services_refuse_the_file_of_all(tmp_path: Path) -> None:
    state_path(tmp_path, None).touch()

    with pytest.raises(StateError, match=r"numalign.db is that of all services in one process"):
        refuse_other_layout(tmp_path, together=False)
    refuse_other_layout(tmp_path, together=True)


def test_an_empty_directory_is_for_either(tmp_path: Path) -> None:
    for together in (True, False):
        refuse_other_layout(tmp_path, together=together)
