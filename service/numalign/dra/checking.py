"""Whether a pod may use its claims, and whether they can be prepared at all (DRA-20)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from numalign.dra import texts
from numalign.dra.claim_changes import drivers_to_ask
from numalign.dra.naming import NamedClaim, named_claims
from numalign.dra.values import ClaimKey, ClaimProblem, Claims, FetchedClaim, PodClaims
from numalign.errors import FieldViolation, InvalidInput
from numalign.model.quoting import quoted

_PODS = ("", "pods")


def checked_claims(
    pod: PodClaims,
    fetched: Mapping[str, FetchedClaim | str],
    kept: Claims,
    is_registered: Callable[[str], bool],
) -> tuple[FetchedClaim, ...]:
    """The pod's claims in order, each once (DRA-T2), if the pod may use all of them.

    `fetched` has by name what the API says, a text where it says an error. A driver has to be
    registered only where it is to be asked (DRA-T5). Raises ClaimProblem for the first claim
    that stands in the way, and InvalidInput where `fetched` does not answer for a claim.
    """
    passed: dict[str, FetchedClaim] = {}
    for named in named_claims(pod):
        claim = _fetched(named.name, fetched)
        _check_use(pod, named, claim)
        for driver in drivers_to_ask(claim, kept.get(claim.key)):
            if not is_registered(driver):
                raise ClaimProblem(texts.not_registered(driver))
        _check_uid(claim, kept)
        passed[named.name] = claim
    return tuple(passed.values())


def _fetched(name: str, fetched: Mapping[str, FetchedClaim | str]) -> FetchedClaim:
    claim = fetched.get(name)
    if claim is None:
        raise InvalidInput(
            FieldViolation("claims", f"says nothing of ResourceClaim {quoted(name)} of the pod")
        )
    if isinstance(claim, str):
        raise ClaimProblem(texts.not_fetched(name, claim))
    return claim


def _check_use(pod: PodClaims, named: NamedClaim, claim: FetchedClaim) -> None:
    key, shown_pod = claim.key, f"{pod.namespace}/{pod.name}"
    shown = f"{key.namespace}/{key.name}"
    if key.namespace != pod.namespace:
        raise ClaimProblem(texts.other_namespace(shown, shown_pod))
    if named.owned and claim.controller_uid != pod.uid:
        raise ClaimProblem(texts.not_owner(shown, shown_pod))
    # An object of another kind may have the same UID (DRA-T11).
    if not any(c.uid == pod.uid and (c.api_group, c.resource) == _PODS for c in claim.reserved_for):
        raise ClaimProblem(texts.not_reserved(pod.name, pod.uid, key.name, claim.uid))
    if claim.drivers is None:
        raise ClaimProblem(texts.not_allocated(key.name))


def _check_uid(claim: FetchedClaim, kept: Claims) -> None:
    """Looked at for every claim before the pod is noted as a user of any (DRA-T20)."""
    known = kept.get(ClaimKey(claim.key.namespace, claim.key.name))
    if known is not None and known.uid != claim.uid:
        raise ClaimProblem(texts.other_uid(claim.key.name, known.uid))
