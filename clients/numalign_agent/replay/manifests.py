"""Plays `manifests` recordings: manifests, directories over time, and answers of a URL."""

from __future__ import annotations

import copy
import re
import tempfile
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

from numalign.replay.players import Player
from numalign.replay.recordings import Json, RecordingError
from numalign_agent.manifests.errors import InvalidPod, ManifestError, NotAPod
from numalign_agent.manifests.manifest import read_pod
from numalign_agent.manifests.placing import Origin
from numalign_agent.pod import CONFIG_HASH, AgentPod
from numalign_agent.sources.file.reading import FileEvent, ManifestFiles
from numalign_agent.sources.http.answers import Answers
from numalign_agent.sources.reading import Reading

_GENERATED = re.compile(r"[0-9a-f]{32}\Z")
_DECODERS_WORDS = re.compile(
    r"(couldn't parse as pod\().*(\), please check config file)", re.DOTALL
)
_URL = "<url>"


def _answer(record: Json) -> object:
    given = record["input"]
    for key, play in _PLAYS.items():
        if key in given:
            return play(given)
    raise RecordingError("holds neither a manifest nor operations nor answers of a URL")


def _manifest(given: Json) -> Json:
    try:
        pod = _read(given)
    except ManifestError as error:
        return {"error": _without_decoders_words(str(error)), "error_kind": _kind_of(error)}
    return {"pod": _shown(pod)}


def _uids(given: Json) -> Json:
    numbers: dict[str, int] = {}
    classes = [
        numbers.setdefault(_read(manifest).uid, len(numbers)) for manifest in given["manifests"]
    ]
    return {"classes": classes}


def _files(given: Json) -> Json:
    with tempfile.TemporaryDirectory(prefix="numalign-manifests-") as made:
        root = Path(made)
        files = ManifestFiles(root / given["source_path"], given["node_name"])
        steps = []
        for operation in given["ops"]:
            reading = _operate(operation, root, files)
            if reading is not None:
                steps.append(_step(reading, _one_line_each, f"{root}/", ""))
        return {"steps": steps}


def _operate(operation: Json, root: Path, files: ManifestFiles) -> Reading | None:
    path = root / operation.get("path", "")
    match operation["op"]:
        case "list":
            return files.list()
        case "event":
            return files.change(FileEvent(operation["event"]), path)
        case "mkdir":
            path.mkdir(parents=True)
        case "write":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(operation.get("content", ""), encoding="utf-8")
        case "symlink":
            path.symlink_to(operation["content"])
        case "remove":
            path.unlink()
        case unknown:
            raise RecordingError(f"unknown operation {unknown}")
    return None


def _answers(given: Json) -> Json:
    answers = Answers(_URL, given["node_name"])
    steps = []
    for response in given["responses"]:
        status = HTTPStatus(response["status"])
        reading = answers.take(status.value, status.phrase, response["body"].encode())
        steps.append(_step(reading, lambda pods: [_shown(pod) for pod in pods], "", ""))
    return {"steps": steps}


_PLAYS: Mapping[str, Callable[[Json], Json]] = {
    "content": _manifest,
    "manifests": _uids,
    "ops": _files,
    "responses": _answers,
}


def _read(given: Json) -> AgentPod:
    return read_pod(given["content"].encode(), Origin(given["node_name"], given["path"]))


def _step(
    reading: Reading, shown: Callable[[tuple[AgentPod, ...]], list[Any]], old: str, new: str
) -> Json:
    error = reading.error
    return {
        "delivered": [] if reading.pods is None else [shown(reading.pods)],
        "error": None if error is None else _without_decoders_words(error.replace(old, new)),
    }


def _one_line_each(pods: tuple[AgentPod, ...]) -> list[str]:
    return sorted(
        f"{pod.namespace}/{pod.name} {pod.spec['containers'][0]['image']}" for pod in pods
    )


def _shown(pod: AgentPod) -> Json:
    """The pod as recordings show it: what was generated has no name of its own there."""
    document = copy.deepcopy(dict(pod.document))
    if _GENERATED.match(pod.uid):
        document["metadata"]["uid"] = "<generated>"
        document["metadata"]["annotations"][CONFIG_HASH] = "<generated>"
    return document


def _kind_of(error: ManifestError) -> str:
    if isinstance(error, NotAPod):
        return "parse"
    if isinstance(error, InvalidPod):
        return "invalid"
    return "reference" if "reference" in str(error) else "name"


def _without_decoders_words(text: str) -> str:
    """The text with what only the kubelet's decoders could say left out."""
    return _DECODERS_WORDS.sub(r"\1...\2", text)


def _expected(record: Json) -> object:
    return _each_error(record["expected"])


def _each_error(value: object) -> object:
    if isinstance(value, dict):
        return {
            key: _without_decoders_words(inner)
            if key == "error" and isinstance(inner, str)
            else _each_error(inner)
            for key, inner in value.items()
        }
    return [_each_error(item) for item in value] if isinstance(value, list) else value


PLAYER = Player(answer=_answer, expected=_expected)
