"""The claims of the sample DRA driver: nothing that a caller sends leads out of its directories."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLE = Path(__file__).parents[3] / "clients/examples/dra-driver/prepared_claims.py"


@pytest.fixture(scope="module")
def example() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("example_prepared_claims", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.mark.parametrize(
    ("namespace", "name", "uid"),
    [
        pytest.param("default", "claim", "../outside", id="uid"),
        pytest.param("..", "/outside", "u", id="name"),
        pytest.param("default", "claim", "a\0b", id="NUL"),
    ],
)
def test_names_that_lead_elsewhere(
    example: ModuleType, tmp_path: Path, namespace: str, name: str, uid: str
) -> None:
    outside = tmp_path / "outside.json"
    outside.write_text(json.dumps([]))
    places = [tmp_path / place for place in ("devices", "claims", "state", "cdi")]
    claims = example.PreparedClaims("driver.example.com", *places)

    with pytest.raises(example.ClaimRefused, match="cannot be the name of a file"):
        claims.prepare(namespace, name, uid)
    if uid != "u":
        with pytest.raises(example.ClaimRefused, match="cannot be the name of a file"):
            claims.unprepare(uid)
    assert outside.exists()
