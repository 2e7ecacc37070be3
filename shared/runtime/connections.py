"""The ports of the clusters that a process serves, as long as they lead to the same cluster."""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from shared.model.errors import AutoscalerError
from shared.ports import ClusterEndpoint
from shared.settings import ClusterAttachment

P = TypeVar("P")
AskEndpoint = Callable[[], ClusterEndpoint]


class _Connection(NamedTuple, Generic[P]):
    attachment: ClusterAttachment
    endpoint: ClusterEndpoint
    ask: AskEndpoint
    ports: P


class Connections(Generic[P]):
    """Ports by cluster; made anew where its attachment or its endpoint is another one.

    Args:
        connect: Makes the ports of a cluster; returns with them what asks EKS for its endpoint.
    """

    def __init__(self, connect: Callable[[ClusterAttachment], tuple[P, AskEndpoint]]) -> None:
        self._connect = connect
        self._known: dict[str, _Connection[P]] = {}

    def to(self, attachment: ClusterAttachment) -> P:
        """Return the ports of an attached cluster.

        Raises:
            AutoscalerError: What connecting raises.
        """
        known = self._known.get(attachment.name)
        if known is None or known.attachment != attachment or _leads_elsewhere(known):
            ports, ask = self._connect(attachment)
            known = self._known[attachment.name] = _Connection(attachment, ask(), ask, ports)
        return known.ports


def _leads_elsewhere(known: _Connection[P]) -> bool:
    """Return whether the cluster has been made anew; where EKS does not say, it has not."""
    try:
        return known.ask() != known.endpoint
    except AutoscalerError:
        return False
