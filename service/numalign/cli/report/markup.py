"""Elements of HTML and SVG as text. Whatever is not markup is escaped here, and only here.

Names of pods come from whoever may make pods, so none of them goes into a page as it is. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape


@dataclass(frozen=True, slots=True)
class Markup:
    """Text that is markup already."""

    text: str


Content = Markup | str | int | float

_VOID = frozenset({"meta", "br", "rect", "line"})


def element(tag: str, /, *content: Content, **attributes: Content) -> Markup:
    """An element. `class_` is `class`; an underscore in another name is a hyphen."""
    shown = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
    )
    if tag in _VOID and not content:
        return Markup(f"<{tag}{shown}/>")
    return Markup(f"<{tag}{shown}>{joined(*content).text}</{tag}>")


def joined(*content: Content) -> Markup:
    """One piece after the other."""
    return Markup("".join(map(_text, content)))


def _text(content: Content) -> str:
    return content.text if isinstance(content, Markup) else escape(str(content))
