"""Resource claims: the `dra` part of the `numalign` section."""

from __future__ import annotations

from pathlib import Path

from numalign.config.settings import DraSettings
from numalign.document.section import Section, shown

_KEYS = ("enabled", "pluginsRegistry", "callTimeout", "retryAfter", "numaHints")


def read_dra(section: Section) -> DraSettings:
    """The settings; mistakes are recorded."""
    section.refuse_unknown(_KEYS)
    default = DraSettings()
    return DraSettings(
        enabled=section.boolean("enabled", default.enabled),
        plugins_registry=_directory(section, "pluginsRegistry", default.plugins_registry),
        call_timeout=section.seconds("callTimeout", default.call_timeout),
        retry_after=section.seconds("retryAfter", default.retry_after),
        numa_hints=section.boolean("numaHints", default.numa_hints),
    )


def _directory(section: Section, key: str, default: Path) -> Path:
    path = Path(section.text(key, str(default)))
    if not path.is_absolute():
        section.wrong(key, f"must be an absolute path, not {shown(section.raw(key))}")
        return default
    return path
