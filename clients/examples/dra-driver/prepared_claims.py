"""The claims that are prepared: a state file and a CDI specification for each.

The state file is written last and removed last: a driver that dies in between finds the claim
not prepared, and prepares it again.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

CDI_VERSION = "0.6.0"


class ClaimRefused(Exception):
    """A claim cannot be prepared; the text says why."""


@dataclass(frozen=True)
class PreparedDevice:
    """A device of a prepared claim."""

    requests: list[str]
    pool: str
    device: str
    cdi_names: list[str]
    share_id: str | None


class PreparedClaims:
    """The claims of one driver. `state` and `cdi` are directories that it writes to."""

    def __init__(self, driver: str, devices: Path, claims: Path, state: Path, cdi: Path) -> None:
        self._driver = driver
        self._devices = devices
        self._claims = claims
        self._state = state
        self._cdi = cdi
        for directory in (state, cdi):
            directory.mkdir(parents=True, exist_ok=True)

    def prepare(self, namespace: str, name: str, uid: str) -> tuple[list[PreparedDevice], bool]:
        """The devices of a claim, and whether that made them ready just now.

        Raises ClaimRefused.
        """
        state = _below(self._state, f"{uid}.json")
        if state.exists():
            return [PreparedDevice(**device) for device in json.loads(state.read_text())], False
        claim = self._read(namespace, name, uid)
        results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results")
        if results is None:
            raise ClaimRefused("the claim is not allocated")
        own = [result for result in results if result["driver"] == self._driver]
        devices = [self._prepared(uid, result) for result in own]
        specification = {
            "cdiVersion": CDI_VERSION,
            "kind": f"{self._driver}/claim",
            "devices": [
                {
                    "name": f"{uid}-{device.device}",
                    "containerEdits": {"env": self._variables(device.device)},
                }
                for device in devices
            ],
        }
        _write(self._specification(uid), specification)
        _write(state, [asdict(device) for device in devices])
        return devices, True

    def unprepare(self, uid: str) -> bool:
        """Undo it; whether there was anything to undo. Raises ClaimRefused."""
        state = _below(self._state, f"{uid}.json")
        was_prepared = state.exists()
        self._specification(uid).unlink(missing_ok=True)
        state.unlink(missing_ok=True)
        return was_prepared

    def health(self) -> dict[str, bool]:
        """Every device, and whether it is healthy."""
        return {
            path.name: not path.read_text().startswith("# unhealthy")
            for path in sorted(self._devices.iterdir())
        }

    def _read(self, namespace: str, name: str, uid: str) -> dict[str, Any]:
        path = _below(self._claims, f"{namespace}.{name}.json")
        try:
            claim: dict[str, Any] = json.loads(path.read_text())
        except FileNotFoundError as error:
            raise ClaimRefused(f"there is no claim {namespace}/{name}") from error
        if claim["metadata"]["uid"] != uid:
            raise ClaimRefused(f"the claim has another UID: {claim['metadata']['uid']}")
        return claim

    def _prepared(self, uid: str, result: dict[str, Any]) -> PreparedDevice:
        device = result["device"]
        if not (self._devices / device).exists():
            raise ClaimRefused(f"there is no device {device}")
        return PreparedDevice(
            requests=[result["request"].split("/", 1)[0]],
            pool=result["pool"],
            device=device,
            cdi_names=[f"{self._driver}/claim={uid}-{device}"],
            share_id=result.get("shareID"),
        )

    def _variables(self, device: str) -> list[str]:
        lines = (self._devices / device).read_text().splitlines()
        return [line for line in lines if "=" in line and not line.startswith("#")]

    def _specification(self, uid: str) -> Path:
        return _below(self._cdi, f"{self._driver}-{uid}.json")


def _below(directory: Path, name: str) -> Path:
    """A file of this name in the directory: what a caller sends must not lead out of it."""
    if "/" in name or "\0" in name:
        raise ClaimRefused(f"{name!r} cannot be the name of a file")
    return directory / name


def _write(path: Path, content: object) -> None:
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(content))
    draft.rename(path)
