"""Names and uids of objects, and how the API server says what is wrong with them.

Separate because pods from bytes, manifests and node objects have the same kinds of names, and
because names end up in messages, file names and labels of those who read answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from numalign.errors import FieldViolation
from numalign.kube.violations import invalid, too_long

MAX_SUBDOMAIN, MAX_LABEL, MAX_UID = 253, 63, 253

LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = rf"{LABEL}(\.{LABEL})*"

_UID = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.:]*[A-Za-z0-9])?")
_IS_LABEL = re.compile(LABEL)
_IS_SUBDOMAIN = re.compile(SUBDOMAIN)

_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex "
    f"used for validation is '{LABEL}')"
)
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    f"for validation is '{SUBDOMAIN}')"
)
_UID_TEXT = (
    "a uid must consist of alphanumeric characters, '-', '_', '.' or ':', and must start and end "
    "with an alphanumeric character"
)


def check_label(path: str, value: str) -> Iterator[FieldViolation]:
    """A DNS label, as names of containers and namespaces are."""
    if len(value) > MAX_LABEL:
        yield invalid(path, value, f"must be no more than {MAX_LABEL} characters")
    if not _IS_LABEL.fullmatch(value):
        yield invalid(path, value, _LABEL_TEXT)


def check_subdomain(path: str, value: str) -> Iterator[FieldViolation]:
    """A DNS name, as names of pods and nodes are."""
    if len(value) > MAX_SUBDOMAIN:
        yield invalid(path, value, f"must be no more than {MAX_SUBDOMAIN} characters")
    if not _IS_SUBDOMAIN.fullmatch(value):
        yield invalid(path, value, _SUBDOMAIN_TEXT)


def check_uid(path: str, value: str) -> Iterator[FieldViolation]:
    """A uid: of an API server, or of whoever made the pod. It may become a file name."""
    if len(value) > MAX_UID:
        yield too_long(path, MAX_UID)
    elif not _UID.fullmatch(value):
        yield invalid(path, value, _UID_TEXT)
