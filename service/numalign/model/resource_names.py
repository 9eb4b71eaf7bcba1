"""What the name of a resource says about it.

Separate because validation, predicates and the providers ask it, each of a different name.
"""

from __future__ import annotations

import re
from functools import lru_cache

_QUOTA_PREFIX = "requests."
_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_LOCAL = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]\Z")
_LONGEST_DOMAIN = 253
_LONGEST_LOCAL = 63


def is_hugepages(name: str) -> bool:
    """Whether this is memory in huge pages of some size."""
    return name.startswith("hugepages-")


def is_native(name: str) -> bool:
    """Whether Kubernetes itself defines the resource."""
    return "/" not in name or "kubernetes.io/" in name


def is_overcommittable(name: str) -> bool:
    """Whether a limit may be above the request."""
    return is_native(name) and not is_hugepages(name)


@lru_cache(maxsize=1024)
def is_extended(name: str) -> bool:
    """Whether this is an extended resource, which is counted in whole pieces (PRED-5)."""
    return (
        not is_native(name)
        and not name.startswith(_QUOTA_PREFIX)
        and is_qualified_name(_QUOTA_PREFIX + name)
    )


def is_qualified_name(name: str) -> bool:
    """Whether this may name a label, an annotation or a resource: `[domain/]name`."""
    domain, slash, local = name.partition("/")
    if not slash:
        domain, local = "", name
    elif len(domain) > _LONGEST_DOMAIN or not _DOMAIN.match(domain):
        return False
    return len(local) <= _LONGEST_LOCAL and bool(_LOCAL.match(local))
