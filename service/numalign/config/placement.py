"""What goes beyond the kubelet's placement: the `placement` part of the `numalign` section.

Every switch of it changes where something goes or whether a pod may start, and is off by default.
"""

from __future__ import annotations

from numalign.config.settings import Settings
from numalign.document.section import Section
from numalign.model.settings import NumaAllocationStrategy, Placement

PLACEMENT = "numalign.placement"
"""The path of the section."""


_KEYS = ("numaAllocationStrategy",)


def read_placement(section: Section) -> Placement:
    """The switches; mistakes are recorded."""
    section.refuse_unknown(_KEYS)
    default = Placement()
    return Placement(
        numa_allocation_strategy=section.choice(
            "numaAllocationStrategy", default.numa_allocation_strategy
        ),
    )


def placement_document(placement: Placement) -> dict[str, object]:
    """The section that says what `placement` does."""
    return {"numaAllocationStrategy": placement.numa_allocation_strategy.value}


def switches_on(placement: Placement) -> tuple[str, ...]:
    """The switches by which placement is not the kubelet's, by path and value."""
    return tuple(
        f"{PLACEMENT}.{key}: {str(value).lower()}"
        for key, value in placement_document(placement).items()
        if value not in {False, NumaAllocationStrategy.NONE.value}
    )


def without_effect(settings: Settings) -> tuple[str, ...]:
    """A warning for each switch that is on and changes nothing under the policies configured."""
    strategy = settings.placement.numa_allocation_strategy
    if strategy is not NumaAllocationStrategy.NONE and settings.topology.policy in {"", "none"}:
        return (
            f"{PLACEMENT}.numaAllocationStrategy: has no effect with topologyManagerPolicy none",
        )
    return ()
