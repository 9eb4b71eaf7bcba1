"""Where the state of services lies: in one file for all of them, or in one file for each.

Services in one process share a file, so that an admission is one sync; services in processes
of their own cannot. Either way reads only its own files, so starting the other way over the
same directory would begin with nothing and give out twice what pods hold: it is refused.
"""

from __future__ import annotations

from pathlib import Path

from numalign.config.settings import Service
from numalign.errors import StateError

KEEPING = (Service.TOPOLOGY, Service.CPU, Service.MEMORY, Service.DEVICE, Service.DRA)
"""The services that keep state."""


def state_name(service: Service | None) -> str:
    """Name of the state file of a service; None: of all services in one process."""
    return "numalign" if service is None else service.value


def state_path(directory: Path, service: Service | None) -> Path:
    """Where that file is."""
    return directory / f"{state_name(service)}.db"


def refuse_other_layout(directory: Path, *, together: bool) -> None:
    """Refuse to start over the state of services that ran the other way.

    `together`: all services are about to start in one process. Raises StateError naming the
    file that was found, and what to do.
    """
    others = KEEPING if together else (None,)
    for service in others:
        path = state_path(directory, service)
        if path.exists():
            kept_by, way = (
                ("services in processes of their own", "`numalign serve all --processes`")
                if together
                else ("all services in one process", "`numalign serve all`")
            )
            raise StateError(
                f"state file {path} is that of {kept_by}, and would not be read: start them with "
                f"{way}, or move the state files out of {directory} once no pod needs them"
            )
