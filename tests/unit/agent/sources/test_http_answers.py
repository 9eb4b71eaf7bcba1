"""Answers of a URL, where recordings say nothing (CFG-10 to CFG-12)."""

from __future__ import annotations

import json

from tests.unit.agent.manifests.texts import manifest

from numalign_agent.manifests.manifest import READ_LIMIT
from numalign_agent.sources.http.answers import Answers

URL = "http://x/pods"
WEB = json.dumps(manifest()).encode()


def test_an_empty_body_removes_the_pods_and_is_reported() -> None:
    answers = Answers(URL, "n")
    assert answers.take(200, "OK", WEB).pods

    reading = answers.take(200, "OK", b"")
    assert reading.pods == ()
    assert reading.error == f"zero-length data received from {URL}"
    # Trap 6: what was seen before an empty body says nothing again.
    assert answers.take(200, "OK", WEB).pods is None


def test_a_body_that_cannot_be_used_is_reported_once_and_stays_a_problem() -> None:
    answers = Answers(URL, "n")
    bad = answers.take(200, "OK", b"bad")

    assert bad.pods is None
    assert bad.error is not None
    assert bad.error.startswith(f"{URL}: couldn't parse as single (")
    assert answers.take(200, "OK", b"bad").error is None
    assert answers.unusable == bad.error

    assert answers.take(200, "OK", WEB).pods
    assert answers.unusable == ""


def test_a_body_that_is_too_long() -> None:
    reading = Answers(URL, "n").take(200, "OK", b"#" * (READ_LIMIT + 1))

    assert (reading.pods, reading.error) == (None, "the read limit is reached")
