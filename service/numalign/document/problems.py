"""A list of what is wrong with a document, so that one run names every mistake in it.

Separate because machine files, inventories and configurations collect problems alike.
"""

from __future__ import annotations

from numalign.errors import ConfigError


class DocumentError(ConfigError):
    """A document is wrong; `problems` holds one sentence per mistake, the message all of them."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class Problems:
    """Collects sentences, in the order in which they were found."""

    __slots__ = ("_sentences",)

    def __init__(self) -> None:
        self._sentences: list[str] = []

    def add(self, path: str, reason: str) -> None:
        """Record that the field at `path` (empty for the whole document) is wrong."""
        self.say(f"{path}: {reason}" if path else reason)

    def say(self, sentence: str) -> None:
        """Record a sentence that names its field itself, as the kubelet's own texts do."""
        self._sentences.append(sentence)

    def __bool__(self) -> bool:
        return bool(self._sentences)

    def sentences(self) -> tuple[str, ...]:
        """Everything recorded so far."""
        return tuple(self._sentences)

    def refuse(self) -> None:
        """Raise DocumentError if anything was recorded."""
        if self._sentences:
            raise DocumentError(*self._sentences)
