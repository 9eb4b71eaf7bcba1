"""What to do where the API server refuses, in words. Pure."""

from __future__ import annotations

from numalign_agent.api.errors import CONFLICT, ApiError, Refused
from numalign_agent.api.failures import explained, no_such_node

FORBIDDEN, INVALID = 403, 422


def is_overtaken(error: ApiError) -> bool:
    """Whether somebody else changed the object in between: to be read and tried anew."""
    return isinstance(error, Refused) and error.status in {CONFLICT, INVALID}


def node_trouble(error: ApiError, node_name: str) -> str:
    """Why the Node cannot be read or changed, and the way out."""
    match error:
        case Refused(status=403):
            return (
                f"{error}: this service account needs the rights get and patch on nodes; bind it "
                "to the ClusterRole numalign-node"
            )
        case Refused(status=404):
            return no_such_node(node_name)
        case _:
            return explained(error)


def topology_trouble(error: ApiError, node_name: str) -> str:
    """Why the NodeResourceTopology cannot be read or written, and the way out."""
    if isinstance(error, Refused) and error.status == FORBIDDEN:
        return (
            f"{error}: this service account needs the rights get, create and update on "
            "noderesourcetopologies of topology.node.k8s.io; bind it to the ClusterRole "
            "numalign-topology"
        )
    return node_trouble(error, node_name)


NO_TOPOLOGY_KIND = (
    "this cluster has no NodeResourceTopology (topology.node.k8s.io/v1alpha2): apply "
    "deploy/crds/noderesourcetopologies.yaml, or leave numalign.agent.node.topology out"
)
