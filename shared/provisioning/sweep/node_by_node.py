"""Work on one node after the other: a refusal for one must not stop the others."""

import logging
from collections.abc import Callable, Iterable
from typing import Final

from shared.model.errors import CertificateError, PermanentError
from shared.model.kubernetes.nodes import Node

_LOG: Final = logging.getLogger(__name__)


class NodeByNode:
    """Does work on nodes; continues after a refusal for one, as by an admission policy.

    Attributes:
        refused: Names of the nodes for which work was refused.
    """

    def __init__(self) -> None:
        self.refused: set[str] = set()

    def each(self, work: Callable[[Node], int], nodes: Iterable[Node]) -> int:
        """Return the sum of the work's results; a node for which it is refused counts zero.

        Raises:
            RetryableError: If the cluster or AWS cannot be reached now.
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
