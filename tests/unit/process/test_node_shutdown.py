"""Whether a shutdown can be watched as the settings say."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.process.observed_world import settings

from numalign.config.settings import ShutdownSettings, ShutdownSource
from numalign.errors import ConfigError
from numalign.process.node_shutdown import check_shutdown


def test_the_package_is_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "numalign.admission.shutdown.logind", raising=False)
    monkeypatch.setitem(sys.modules, "dbus_fast", None)
    by_call = settings(tmp_path)
    shutdown = ShutdownSettings(source=ShutdownSource.LOGIND)
    by_logind = replace(by_call, admission=replace(by_call.admission, shutdown=shutdown))

    check_shutdown(by_call)
    with pytest.raises(ConfigError, match=r"pip install 'numalign\[logind\]'"):
        check_shutdown(by_logind)
