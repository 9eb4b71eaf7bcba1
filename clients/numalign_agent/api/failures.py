"""What to do where an API server cannot be reached or refuses, in words. Pure."""

from __future__ import annotations

from numalign_agent.api.errors import ApiError, Refused, Unreachable


def explained(error: ApiError) -> str:
    """Why a call did not succeed, and the way out where there is one."""
    match error:
        case Unreachable():
            return (
                f"{error}; it is asked again by itself. If this goes on, see that the API server "
                "is up, and that this is its address"
            )
        case Refused(status=401):
            return f"{error}: the API server does not know these credentials"
        case Refused(status=403):
            return f"{error}: bind this account to a ClusterRole with that right"
        case _:
            return str(error)


def no_such_node(node_name: str) -> str:
    """Why nothing is known of the node, and the way out."""
    return (
        f"there is no Node {node_name}: --node-name (numalign.agent.nodeName) must be the "
        "name that the node has in the cluster"
    )
