"""Taking out of a text what lets somebody in anywhere. Pure.

What numalign says of itself has no secrets to begin with; this is for logs and pages that others
may have had a hand in.
"""

from __future__ import annotations

import re

LEFT_OUT = "<left out>"

_KEY = r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"

_PATTERNS = (
    # Private keys, whole.
    (re.compile(_KEY, re.DOTALL), LEFT_OUT),
    # Credentials of HTTP.
    (re.compile(r"\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}", re.IGNORECASE), rf"\1 {LEFT_OUT}"),
    # JSON web tokens.
    (re.compile(r"\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*"), LEFT_OUT),
    # Names and passwords in URLs.
    (re.compile(r"://[^/\s:@\"']+:[^/\s@\"']+@"), f"://{LEFT_OUT}@"),
    # `password=...`, `"token": "..."` and their kind.
    (
        re.compile(
            r"""(\b[\w.-]*(?:password|passwd|secret|token|api[_-]?key|authorization)["']?\s*[:=]\s*)"""
            r"""("[^"]*"|'[^']*'|[^\s,;}"']+)""",
            re.IGNORECASE,
        ),
        rf"\1{LEFT_OUT}",
    ),
)


def scrubbed(text: str) -> str:
    """The text without keys, tokens and passwords."""
    for pattern, instead in _PATTERNS:
        text = pattern.sub(instead, text)
    return text
