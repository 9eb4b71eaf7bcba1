"""What the site's hook makes of a page; that all pages build is `make docs`."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
import yaml

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_site", ROOT / "tools" / "docs_site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("page", "link", "shown"),
    [
        ("cli.md", "[configuration](configuration.md#x)", "[configuration](configuration.md#x)"),
        ("security.md", "[SECURITY.md](../SECURITY.md)", "`SECURITY.md`"),
        ("security.md", "[how](../SECURITY.md#x)", "how (`SECURITY.md`)"),
        ("spec/README.md", "[wire/](wire)", "wire/ (`docs/spec/wire`)"),
        ("cli.md", "[it](https://example.com/a)", "[it](https://example.com/a)"),
    ],
    ids=["inside", "by its name", "by other words", "a directory", "elsewhere"],
)
def test_links(hook: ModuleType, page: str, link: str, shown: str) -> None:
    assert hook.with_inner_links(link, page) == shown


def test_a_dead_link_out_of_the_site_is_an_error(hook: ModuleType) -> None:
    with pytest.raises(hook.DeadLink, match=r"docs/cli\.md: \.\./NONE\.md: there is no NONE\.md"):
        hook.with_inner_links("[x](../NONE.md)", "cli.md")


@pytest.mark.parametrize(
    ("markdown", "read"),
    [
        ("1. one\n\n   more\n", "1. one\n\n    more\n"),
        ("1. one\n\n   ```yaml\n   a: 1\n   ```\n\nend\n", "1. one\n\n\n        a: 1\n\n\nend\n"),
        ("- one\n  goes on\n- two\n", "- one\n    goes on\n- two\n"),
        ("some:\n- one\n- two\n", "some:\n\n- one\n- two\n"),
        ("<!-- x -->\n| a |\n", "<!-- x -->\n\n| a |\n"),
        ("```yaml\n- a: 1\n  b: 2\n```\n", "```yaml\n- a: 1\n  b: 2\n```\n"),
    ],
    ids=[
        "a paragraph",
        "code in it",
        "a line that goes on",
        "a list at once",
        "a table at once",
        "code",
    ],
)
def test_lists(hook: ModuleType, markdown: str, read: str) -> None:
    assert hook.with_deep_lists(markdown) == read


def test_the_settings_make_every_fault_an_error() -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))

    assert settings["strict"]
    assert {level for part in settings["validation"].values() for level in part.values()} == {
        "warn"
    }


def test_code_of_the_page_on_go_is_that_of_the_example() -> None:
    page = (ROOT / "docs" / "how-to" / "go-agent.md").read_text(encoding="utf-8")
    sources = "\n".join(
        path.read_text(encoding="utf-8")
        for path in (ROOT / "clients" / "examples" / "go-agent").glob("*.go")
    )
    blocks = re.findall(r"```go\n(.*?)```", page, re.DOTALL)

    assert len(blocks) == 3
    for block in blocks:
        assert block.strip() in sources
