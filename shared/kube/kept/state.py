"""Bound pods and nodes, which each plan reads completely, kept between invocations."""

import itertools
import logging
from collections.abc import Callable, Sequence
from typing import Final

from shared.kube.kept.copy import KeptCopy
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.ports.cluster import EachPage

# A stride that is far apart among 100,000 nodes in order: each reading checks another node.
_STRIDE: Final = 7919
_LOG: Final = logging.getLogger(__name__)


class KeptState:
    """The copies of one cluster.

    Each reading compares one node, or its pods, with a direct read. Where they differ even after a
    second reading, the copy is listed again.

    Args:
        pods: Pods on nodes.
        pods_on: Reads all pods of one node.
    """

    def __init__(
        self,
        pods: KeptCopy[Pod],
        nodes: KeptCopy[Node],
        pods_on: Callable[[str], Sequence[Pod]],
        read_node: Callable[[str], Node | None],
    ) -> None:
        self._pods = pods
        self._nodes = nodes
        self._pods_on = pods_on
        self._read_node = read_node
        # Separate counters: plans read both alternately, so a shared counter would check only every
        # second node.
        self._turns_of_pods = itertools.count()
        self._turns_of_nodes = itertools.count()

    def bound_pods(self, each_page: EachPage) -> tuple[Pod, ...]:
        """Return pods that have a node and are not terminal, sorted by key."""
        found = self._pods.read(each_page)
        if not self._pods.followed or not found:
            return found
        # Names come from the copy of nodes: a node all of whose pods were lost has none in `found`.
        names = [node.name for node in self._nodes.last] or [pod.node_name for pod in found]
        node_name = names[next(self._turns_of_pods) * _STRIDE % len(names)]
        if self._has_pods_of(node_name, found):
            return found
        # The difference may have happened between the two readings.
        found = self._pods.read(each_page)
        if self._has_pods_of(node_name, found):
            return found
        _LOG.warning("the kept pods of node %s have drifted: all are listed again", node_name)
        return self._pods.relist(each_page)

    def nodes(self, each_page: EachPage) -> tuple[Node, ...]:
        """Return all nodes, sorted by name."""
        found = self._nodes.read(each_page)
        if not self._nodes.followed or not found:
            return found
        # A node that was lost is checked where pods on it are known.
        names = sorted({node.name for node in found} | {pod.node_name for pod in self._pods.last})
        name = names[next(self._turns_of_nodes) * _STRIDE % len(names)]
        if self._has_node(name, found):
            return found
        found = self._nodes.read(each_page)
        if self._has_node(name, found):
            return found
        _LOG.warning("the kept node %s has drifted: all are listed again", name)
        return self._nodes.relist(each_page)

    def save(self) -> bool:
        """Save the copies for other processes, as they were last read; return if any was saved."""
        # Independently: a cluster of few nodes may have many pods.
        return any([self._pods.save(), self._nodes.save()])

    def _has_pods_of(self, node_name: str, found: Sequence[Pod]) -> bool:
        shown = [pod for pod in self._pods_on(node_name) if not pod.is_terminal]
        return _same(shown, [pod for pod in found if pod.node_name == node_name])

    def _has_node(self, name: str, found: Sequence[Node]) -> bool:
        node = self._read_node(name)
        return _same([node] if node else [], [kept for kept in found if kept.name == name])


def _same(shown: Sequence[Pod | Node], kept: Sequence[Pod | Node]) -> bool:
    def versions(values: Sequence[Pod | Node]) -> frozenset[tuple[str, str]]:
        return frozenset((value.uid, value.resource_version) for value in values)

    return versions(shown) == versions(kept)
