"""Which claims a pod and its containers lead to (DRA-18, DRA-19, DRA-25)."""

from __future__ import annotations

from dataclasses import dataclass

from numalign.dra import texts
from numalign.dra.values import ClaimProblem, ContainerReferences, PodClaim, PodClaims


@dataclass(frozen=True, slots=True)
class NamedClaim:
    """A claim by its name. `owned`: it was made for the pod, which has to be its controller."""

    name: str
    owned: bool


@dataclass(frozen=True, slots=True)
class ContainerClaim:
    """A claim that a container uses: the requests of it (empty text: all), and how it says so."""

    name: str
    requests: tuple[str, ...]
    shown: tuple[str, ...]


def named_claims(pod: PodClaims) -> tuple[NamedClaim, ...]:
    """The pod's claims in the order of its spec, the extended one last; each may come twice.

    Raises ClaimProblem for an entry that does not lead to a claim yet.
    """
    named = [claim for entry in pod.entries if (claim := _named(pod, entry)) is not None]
    if pod.extended_claim:
        named.append(NamedClaim(pod.extended_claim, owned=False))
    return tuple(named)


def container_claims(pod: PodClaims, container: ContainerReferences) -> tuple[ContainerClaim, ...]:
    """The claims that one container uses, each once, in the order of `named_claims` (PR-10).

    An entry for which no claim was needed is left out. Raises ClaimProblem as `named_claims`.
    """
    used: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}

    def add(name: str, requests: tuple[str, ...], shown: tuple[str, ...]) -> None:
        known = used.get(name, ((), ()))
        used[name] = (known[0] + requests, known[1] + shown)

    for entry in pod.entries:
        references = [r for r in container.references if r.entry == entry.name]
        claim = _named(pod, entry) if references else None
        if claim is not None:
            add(
                claim.name,
                tuple(reference.request for reference in references),
                tuple(reference.shown for reference in references),
            )
    if pod.extended_claim and container.extended:
        add(pod.extended_claim, container.extended, ())
    return tuple(ContainerClaim(name, *what) for name, what in used.items())


def _named(pod: PodClaims, entry: PodClaim) -> NamedClaim | None:
    shown = f"{pod.namespace}/{pod.name}"
    if entry.claim_name is not None:
        return NamedClaim(entry.claim_name, owned=False)
    if entry.template is None:
        raise ClaimProblem(texts.nothing_set(shown, entry.name))
    if entry.name not in pod.statuses:
        raise ClaimProblem(texts.not_created(shown))
    made = pod.statuses[entry.name]
    return None if made is None else NamedClaim(made, owned=True)
