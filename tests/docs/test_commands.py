"""Every command of the documents, typed in the order of its page beside real services.

What is shown below a command has to be what it says. tests/docs/not_run.py lists what is not typed.
"""

from __future__ import annotations

import re
import time
import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from tests.docs.not_run import ELSEWHERE, NOT_RUN
from tests.docs.pages import PAGES, ROOT, Command, File, name_of, steps_of
from tests.docs.scene import Done, Scene
from tests.docs.scenes import SETTINGS, Setting

pytestmark = pytest.mark.processes

_SECONDS = 60


def is_run(command: Command) -> bool:
    return not any(command.line.startswith(begin) for begin in NOT_RUN)


TYPED = [
    page
    for page in PAGES
    if name_of(page) not in ELSEWHERE
    and any(isinstance(step, Command) and is_run(step) for step in steps_of(page))
]


def lines(text: str, scene: Scene) -> list[str]:
    """The lines without what differs from run to run: places, widths, times, processes."""
    text = text.replace(str(scene.directory / "run"), "/run/numalign")
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME", text)
    text = re.sub(r"\d+(\.\d+)? ms", "N ms", text)
    text = re.sub(r"revision \d+", "revision N", text)
    return [re.sub(r"  +", "  ", line).rstrip() for line in text.strip("\n").splitlines()]


def check_shown(command: Command, done: Done, scene: Scene) -> None:
    """What is shown is what was said, up to a line of three dots, or up to three dots in a line."""
    got = lines(done.output, scene)
    shown = lines("\n".join(command.shown), scene)
    if shown and shown[-1].strip() == "...":
        shown = shown[:-1]
        got = got[: len(shown)]
    cut = [
        line[: len(expected) - 3] + "..." if expected.endswith("...") else line
        for line, expected in zip(got, shown, strict=False)
    ]
    assert [*cut, *got[len(cut) :]] == shown, command.line


def meant(setting: Setting, command: Command, times: int) -> int:
    """The exit code that the page means, by the longest beginning that is named."""
    keys = [
        key
        for key in setting.codes
        if f"{command.line}#{times}" == key
        or command.line.startswith(key)
        or ("#" in key and key.endswith(f"#{times}") and command.line.startswith(key[:-2]))
    ]
    return setting.codes[max(keys, key=len)] if keys else 0


def typed(scene: Scene, setting: Setting, command: Command, code: int) -> Done:
    """Type it; what settles is typed again until it ends, and shows, what is meant."""
    deadline = time.monotonic() + _SECONDS
    while True:
        done = scene.type(command)
        settles = any(command.line.startswith(begin) for begin in setting.settles)
        if not settles or time.monotonic() > deadline:
            return done
        try:
            assert done.code == code
            if command.shown:
                check_shown(command, done, scene)
        except AssertionError:
            time.sleep(0.2)
        else:
            return done


def completed(command: Command, setting: Setting, scene: Scene) -> Command:
    """The line with what the setting adds."""
    line = command.line.removesuffix("&").rstrip()
    stays = command.stays or line.startswith(setting.stays or ("\0",))
    for begin, more in setting.added.items():
        if line.startswith(begin):
            line = f"{line} {more.format(here=scene.directory)}"
    return Command(f"{line} &" if stays else line, command.shown)


@pytest.mark.parametrize("page", TYPED, ids=name_of)
def test_a_pages_commands_do_what_it_says(page: Path) -> None:
    setting = SETTINGS.get(name_of(page), Setting())
    steps = list(steps_of(page))
    commands = [step for step in steps if isinstance(step, Command) and is_run(step)]
    scene = Scene(setting.places, setting.section)
    try:
        for name, text in setting.files.items():
            scene.write(File(name, text))
        if setting.serves and not any(" serve " in command.line for command in commands):
            assert scene.type(Command("numalign serve all --config config.yaml &")).code == 0
        for line in setting.before:
            done = scene.type(Command(line))
            assert done.code == meant(setting, Command(line), 1), (line, done.output)
        seen: Counter[str] = Counter()
        for step in steps:
            if isinstance(step, File):
                scene.write(step)
            elif is_run(step):
                seen[step.line] += 1
                command = completed(step, setting, scene)
                code = meant(setting, step, seen[step.line])
                done = typed(scene, setting, command, code)
                assert done.code == code, (step.line, done.output)
                if step.shown:
                    check_shown(command, done, scene)
        for line in setting.after:
            assert typed(scene, replace(setting, settles=("!",)), Command(line), 0).code == 0
    finally:
        failed = scene.close()
    assert failed == {}


@pytest.mark.parametrize("begin", NOT_RUN)
def test_what_is_not_typed_is_on_some_page(begin: str) -> None:
    found = [
        step.line
        for page in PAGES
        for step in steps_of(page)
        if isinstance(step, Command) and step.line.startswith(begin)
    ]

    assert found


@pytest.mark.parametrize(("page", "test"), ELSEWHERE.items())
def test_a_page_with_a_test_of_its_own(page: str, test: str) -> None:
    assert (ROOT / page).is_file()
    assert Path(page).name in (ROOT / test).read_text(encoding="utf-8")


def _everywhere(pattern: str) -> list[str]:
    texts = (page.read_text(encoding="utf-8") for page in PAGES)
    return sorted({found for text in texts for found in re.findall(pattern, text, re.MULTILINE)})


@pytest.mark.parametrize("target", _everywhere(r"(?:^ *(?:\$ )?|`)make ([a-z][a-z0-9-]*)"))
def test_targets(target: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")

    assert re.search(rf"^{target}:", makefile, re.MULTILINE)


@pytest.mark.parametrize("extra", _everywhere(r"numalign\[([a-z]+)\]"))
def test_extras(extra: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert extra in project["optional-dependencies"]
