"""What an admit handler answers.

Separate because every handler and whoever asks them share it, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verdict:
    """Yes, or no with a one-word reason and a message for people (ADM-3).

    Reason and message are empty on admission.
    """

    admit: bool
    reason: str = ""
    message: str = ""


ADMITTED = Verdict(True)
"""The answer of a handler that has nothing against the pod."""


def rejected(reason: str, message: str) -> Verdict:
    """A refusal."""
    return Verdict(False, reason, message)
