"""Pods on nodes, and nodes: what a plan reads whole, kept by the process between invocations."""

import itertools
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from shared.kube.api import KubeApi
from shared.kube.kept import decoding
from shared.kube.kept.copy import SMALL, KeptCopy
from shared.manifests.nodes import decode_node
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.ports.cluster import EachPage

_BOUND: Final = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
# Of 100,000 nodes in order, these are far apart: each reading looks at another one.
_STRIDE: Final = 7919
_LOG: Final = logging.getLogger(__name__)


class KeptState:
    """The copies of one cluster.

    Each reading compares a node and its pods with what the server shows of them. Where they differ
    even after what happened meanwhile was read, the copies are listed anew.

    Args:
        api: Its API server.
        paths: Of all pods and of all nodes.
        decode_pod: Makes of a raw pod the value that is kept.
        pods_on: Reads all pods of one node.
        node: Reads one node.
    """

    def __init__(
        self,
        api: KubeApi,
        paths: tuple[str, str],
        decode_pod: Callable[[Mapping[str, Any]], Pod],
        pods_on: Callable[[str], Sequence[Pod]],
        node: Callable[[str], Node | None],
    ) -> None:
        self._pods = KeptCopy(
            api, paths[0], _BOUND, decoding.PODS, decode_pod, lambda pod: (pod.key, pod.uid)
        )
        self._nodes = KeptCopy(
            api, paths[1], "", decoding.NODES, decode_node, lambda node: node.name
        )
        self._pods_on = pods_on
        self._node = node
        self._turns = itertools.count()

    def bound_pods(self, each_page: EachPage) -> tuple[Pod, ...]:
        """Return pods that have a node and are not terminal, sorted by key."""
        found = self._pods.read(each_page)
        if len(found) < SMALL or not self._pods.followed:
            return found
        # A node all of whose pods were lost has none in the copy of pods.
        names = [node.name for node in self._nodes.last] or [pod.node_name for pod in found]
        node = names[next(self._turns) * _STRIDE % len(names)]
        if _same(_running(self._pods_on(node)), _on(found, node)):
            return found
        # What differs may have happened between the two readings.
        found = self._pods.read(each_page)
        if _same(_running(self._pods_on(node)), _on(found, node)):
            return found
        _LOG.warning("the kept pods of node %s have drifted: all are listed again", node)
        self._pods.forget()
        return self._pods.read(each_page)

    def nodes(self, each_page: EachPage) -> tuple[Node, ...]:
        """Return all nodes, sorted by name."""
        found = self._nodes.read(each_page)
        if len(found) < SMALL or not self._nodes.followed:
            return found
        place = next(self._turns) * _STRIDE % len(found)
        name = found[place].name
        if _same(_existing(self._node(name)), [found[place]]):
            return found
        found = self._nodes.read(each_page)
        kept = [node for node in found if node.name == name]
        if _same(_existing(self._node(name)), kept):
            return found
        _LOG.warning("the kept node %s has drifted: all are listed again", name)
        self._nodes.forget()
        return self._nodes.read(each_page)


def _same(shown: Sequence[Pod | Node], kept: Sequence[Pod | Node]) -> bool:
    def versions(values: Sequence[Pod | Node]) -> frozenset[tuple[str, str]]:
        return frozenset((value.uid, value.resource_version) for value in values)

    return versions(shown) == versions(kept)


def _on(pods: Sequence[Pod], node: str) -> Sequence[Pod]:
    return [pod for pod in pods if pod.node_name == node]


def _running(pods: Sequence[Pod]) -> Sequence[Pod]:
    return [pod for pod in pods if not pod.is_terminal]


def _existing(node: Node | None) -> Sequence[Node]:
    return [] if node is None else [node]
