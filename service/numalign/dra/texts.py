"""What is said of claims and drivers, in the kubelet's words where it has any."""

from __future__ import annotations

from collections.abc import Iterable

from numalign.model.quoting import quoted

REASON = "FailedPrepareDynamicResources"
"""Reason of the event where claims are not prepared (DRA-17)."""

PREPARE = "NodePrepareResources"
UNPREPARE = "NodeUnprepareResources"


def not_prepared(cause: str) -> str:
    """A pod cannot start yet (DRA-17)."""
    return f"Failed to prepare dynamic resources: prepare dynamic resources: {cause}"


def not_unprepared(cause: str) -> str:
    """A pod that has ended cannot be let go yet (DRA-28)."""
    return f"unprepare dynamic resources: {cause}"


def not_created(pod: str) -> str:
    """The claim of a template is not there yet (DRA-19)."""
    return f"pod {quoted(pod)}: ResourceClaim not created yet"


def nothing_set(pod: str, entry: str) -> str:
    """An entry names neither a claim nor a template (DRA-19)."""
    return (
        f"pod {quoted(pod)}, spec.resourceClaim {quoted(entry)}: "
        "none of the supported fields are set"
    )


def not_fetched(claim: str, cause: str) -> str:
    """A claim could not be read (DRA-20)."""
    return f"fetch ResourceClaim {claim}: {cause}"


def other_namespace(claim: str, pod: str) -> str:
    """A claim made from a template is in another namespace (DRA-20)."""
    return f"ResourceClaim {claim} is not in the same namespace as Pod {pod}"


def not_owner(claim: str, pod: str) -> str:
    """A claim was made for another pod (DRA-20)."""
    return f"ResourceClaim {claim} was not created for Pod {pod} (Pod is not owner)"


def not_reserved(pod: str, pod_uid: str, claim: str, claim_uid: str) -> str:
    """A claim is reserved for others (DRA-20)."""
    return f"pod {pod} ({pod_uid}) is not allowed to use ResourceClaim {claim} ({claim_uid})"


def not_allocated(claim: str) -> str:
    """A claim has no devices yet (DRA-20)."""
    return f"ResourceClaim {claim}: not allocated"


def other_uid(claim: str, old_uid: str) -> str:
    """A claim of the same name is still kept (DRA-21)."""
    return (
        f"old ResourceClaim with same name {claim} and different UID {old_uid} still exists "
        "(previous pod force-deleted?!)"
    )


def not_registered(driver: str) -> str:
    """Nobody has registered as this driver (DRA-8)."""
    return f"DRA driver {driver} is not registered" if driver else "DRA driver name is empty"


def call_failed(call: str, error: str) -> str:
    """A driver does not answer, or answers with an error (DRA-22, DRA-30)."""
    return f"{call}: {error}"


def unknown_claim(call: str, uid: str) -> str:
    """A driver answers for a claim that it was not asked about (DRA-22, DRA-30)."""
    return f"{call} returned result for unknown claim UID {uid}"


def claim_failed(call: str, claim: str, error: str) -> str:
    """A driver refuses one claim (DRA-22, DRA-30)."""
    return f"{call} failed for ResourceClaim {claim}: {error}"


def skipped(call: str, count: int) -> str:
    """A driver does not answer for some claims (DRA-22, DRA-30)."""
    return f"{call} skipped {count} ResourceClaims"


def not_cached(claim: str, namespace: str) -> str:
    """A container refers to a claim that was not prepared (DRA-26)."""
    return (
        f"internal error: unable to get claim info for ResourceClaim {claim} "
        f"in namespace {namespace}"
    )


def bad_versions(driver: str, endpoint: str, cause: str) -> str:
    """A plugin speaks no service that we do (DRA-5)."""
    return (
        f"invalid supported gRPC versions of DRA driver plugin {driver} at endpoint {endpoint}: "
        f"{cause}"
    )


NO_VERSIONS = "empty list of supported gRPC services (aka supported versions)"
"""A plugin names no service at all (DRA-5)."""


def no_common_version(offered: Iterable[str], spoken: Iterable[str]) -> str:
    """None of a plugin's services is one of ours (DRA-5)."""
    return (
        f"none of services supported by the plugin ({_list(offered)}) are supported by the kubelet "
        f"({_list(spoken)})"
    )


def registered_twice(driver: str, endpoint: str) -> str:
    """An endpoint registers again for the same driver (DRA-6)."""
    return f"endpoint {endpoint} already registered for DRA driver plugin {driver}"


def _list(names: Iterable[str]) -> str:
    return f"[{' '.join(quoted(name) for name in names)}]"
