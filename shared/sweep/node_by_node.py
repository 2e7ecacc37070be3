"""Work on one node after the other: what is refused for one must not keep the others."""

import logging
from collections.abc import Callable, Iterable
from typing import Final

from shared.model.errors import CertificateError, PermanentError
from shared.model.kubernetes.nodes import Node

_LOG: Final = logging.getLogger(__name__)


class NodeByNode:
    """Does work on nodes, also after it was refused for one, as by an admission policy.

    Attributes:
        refused: Names of the nodes for which work was refused.
    """

    def __init__(self) -> None:
        self.refused: set[str] = set()

    def each(self, work: Callable[[Node], int], nodes: Iterable[Node]) -> int:
        """Return the sum of what the work returns for each node, zero where it is refused.

        Raises:
            RetryableError: If the cluster or AWS cannot be asked now.
            CertificateError: If the API server's certificate is not valid for it.
        """
        return sum(self._do(work, node) for node in nodes)

    def _do(self, work: Callable[[Node], int], node: Node) -> int:
        try:
            return work(node)
        except CertificateError:
            raise
        except PermanentError as error:
            _LOG.warning("node %s is skipped: %s", node.name, error)
            self.refused.add(node.name)
            return 0
