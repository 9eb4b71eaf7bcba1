"""A real Prometheus out of Debian's package, scraping what it is told."""

from __future__ import annotations

import json
import random
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import yaml
from tests.e2e.debian import unpacked
from tests.observability.queries import DEPLOYED

T = TypeVar("T")

_SUITE = "bookworm"  # later ones have promtool in another package
_SECONDS = 90
_PORTS = range(20_000, 32_000)
"""Below those that a kernel chooses from."""


def program(name: str) -> Path:
    """`prometheus` or `promtool`. Leaves the test out where the package cannot be had."""
    return unpacked(_SUITE, "prometheus") / "usr" / "bin" / name


def free_port() -> int:
    """A TCP port that nobody listens on, and that no connection of somebody else is given."""
    for port in random.sample(_PORTS, len(_PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise AssertionError(f"every port of {_PORTS} is taken")


class Prometheus:
    """A running one."""

    def __init__(self, port: int) -> None:
        self._base = f"http://127.0.0.1:{port}/api/v1"

    def get(self, path: str, **parameters: str) -> Any:
        """The data of an answer."""
        query = urllib.parse.urlencode(parameters)
        try:
            with urllib.request.urlopen(
                f"{self._base}/{path}?{query}", timeout=_SECONDS
            ) as response:
                return json.load(response)["data"]
        except urllib.error.HTTPError as error:
            with error:
                raise

    def value(self, query: str) -> float | None:
        """The value of the only series that the query finds; None for none."""
        found = self.get("query", query=query)["result"]
        if not found:
            return None
        (series,) = found
        return float(series["value"][1])


@contextmanager
def prometheus(directory: Path, *targets: str, rules: Path | None = None) -> Iterator[Prometheus]:
    """Prometheus with the deployed configuration and rules, but these targets and short intervals.

    `rules` are others in place of the deployed ones.
    """
    config = yaml.safe_load((DEPLOYED / "prometheus.yaml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = (
        [str(DEPLOYED / file) for file in config["rule_files"]] if rules is None else [str(rules)]
    )
    config["scrape_configs"][0]["static_configs"] = [{"targets": list(targets)}]
    del config["scrape_configs"][1:]
    directory.mkdir()
    file = directory / "prometheus.yaml"
    file.write_text(yaml.safe_dump(config))
    port = free_port()
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                program("prometheus"),
                f"--config.file={file}",
                f"--storage.tsdb.path={directory / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
                "--enable-feature=exemplar-storage",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        running = Prometheus(port)
        eventually(lambda: running.get("status/runtimeinfo"))
        yield running
    finally:
        process.terminate()
        process.wait(timeout=_SECONDS)


def eventually(what: Callable[[], T]) -> T:
    """The first answer that is no error and not empty; fails with the last one after a while."""
    deadline = time.monotonic() + _SECONDS
    while True:
        last: object
        try:
            found = what()
        except OSError as error:
            last = error
        else:
            if found:
                return found
            last = found
        if time.monotonic() > deadline:
            raise AssertionError(f"still {last!r} after {_SECONDS} s")
        time.sleep(0.2)
