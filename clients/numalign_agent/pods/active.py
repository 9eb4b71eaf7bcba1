"""Which pods count as being on the node (ADM-8). Pure."""

from __future__ import annotations

from numalign_agent.pod import AgentPod
from numalign_agent.workers.work import PodWork


def is_active(pod: AgentPod, work: PodWork | None, *, ended: bool) -> bool:
    """Whether a wanted pod holds resources or may yet.

    `ended`: the agent's own status of it is terminal. One that is ended counts for as long as
    its worker is stopping containers.
    """
    if work is not None and work.known_terminated:
        return False
    over = ended or pod.is_terminal
    return not over or (work is not None and work.end_requested)
