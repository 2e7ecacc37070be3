"""Observes a cluster for `dovetail shadow`: watches of pods and nodes, and lists of the rest."""

import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

from functions.cli.shadow.fleet import Observation
from functions.cli.watch.cluster_watch import ClusterWatch, WatchedPod
from shared.disruption.simulate import as_pending
from shared.model.errors import AutoscalerError, NotInstalledError
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod, without_stale_nominations
from shared.model.kubernetes.volumes import RESOLVED
from shared.model.provisioner import Provisioner
from shared.model.requirements import Requirements
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace

if TYPE_CHECKING:
    from shared.kube.reflector import Reflector

# A watch lasts up to seven minutes; the next one is served again.
_BLIND_AFTER: Final = timedelta(minutes=10)
_LIST_EVERY: Final = timedelta(seconds=60)

# What could not be read has a note of its kind.
NODE_POOLS: Final = "NodePools"
_VOLUMES: Final = "Volumes"

T = TypeVar("T")
_NodeAndTerms = tuple[str, tuple[tuple[Requirements, ...], ...]]
_NOT_KNOWN: Final[_NodeAndTerms] = ("", ())


class ClusterObserver:
    """Observes a cluster until `stop`; nothing is written in it.

    Args:
        cluster: Reads it.
        now: The current time, UTC.

    Attributes:
        notes: What may not be read, by kind.
    """

    def __init__(self, cluster: ClusterWatch, now: Callable[[], datetime]) -> None:
        self.notes: dict[str, str] = {}
        self._cluster = cluster
        self._now = now
        self._lock = threading.Lock()
        self._nodes: dict[str, Node] = {}
        self._pods: dict[str, Pod] = {}
        self._served = [now(), now()]
        self._watches: tuple[Reflector[Any], ...] = (
            cluster.nodes(self._node, lambda: self._was_served(0)),
            cluster.pods(self._pod, lambda: self._was_served(1)),
        )
        self._lists = Observation(at=now(), nodes=(), pods=())
        self._listed_at: datetime | None = None
        # By uid of the pod: its node when they were read, and what they require of nodes.
        self._volume_terms: dict[str, _NodeAndTerms] = {}

    def start(self) -> None:
        """Start to watch."""
        for watch in self._watches:
            watch.start()

    def stop(self) -> None:
        """Stop watching."""
        for watch in self._watches:
            watch.stop(timedelta())

    @property
    def is_synced(self) -> bool:
        """Whether pods and nodes have been read once."""
        return all(watch.has_synced for watch in self._watches)

    def observe(self) -> Observation | None:
        """Return the cluster as it is now, None while that is not known.

        It is not while the first lists are not complete, or the API server has served no watch for
        ten minutes.
        """
        now = self._now()
        with self._lock:
            if not self.is_synced or now - min(self._served) > _BLIND_AFTER:
                return None
            nodes, pods = tuple(self._nodes.values()), tuple(self._pods.values())
        pods = without_stale_nominations(pods, (node.name for node in nodes))
        if self._listed_at is None or now - self._listed_at >= _LIST_EVERY:
            self._list(pods)
            self._listed_at = now
        return replace(self._lists, at=now, nodes=nodes, pods=self._with_volumes(pods, now))

    # --- watches

    def _was_served(self, number: int) -> None:
        self._served[number] = self._now()

    def _node(self, old: Node | None, new: Node | None) -> None:
        with self._lock:
            if old is not None:
                self._nodes.pop(old.uid, None)
            if new is not None:
                self._nodes[new.uid] = new

    def _pod(self, old: WatchedPod | None, new: WatchedPod | None) -> None:
        with self._lock:
            if old is not None:
                self._pods.pop(old.pod.uid, None)
            if new is not None and not new.pod.is_terminal:
                self._pods[new.pod.uid] = new.pod

    # --- lists

    def _list(self, pods: Sequence[Pod]) -> None:
        """Read what is not watched; what cannot be read stays as it was."""
        known, cluster = self._lists, self._cluster
        self._lists = replace(
            known,
            provisioners=self._read(NODE_POOLS, self._provisioners, known.provisioners),
            daemonsets=self._read("DaemonSets", cluster.daemonsets, known.daemonsets),
            budgets=self._read("PodDisruptionBudgets", cluster.disruption_budgets, known.budgets),
            namespaces=self._read(
                "Namespaces", lambda: cluster.namespaces_for(pods), known.namespaces
            ),
        )

    def _provisioners(self) -> tuple[Provisioner, ...]:
        try:
            return self._cluster.provisioners()
        except NotInstalledError:
            return ()

    def _read(self, kind: str, read: Callable[[], T], known: T) -> T:
        try:
            found = read()
        except AutoscalerError as error:
            self.notes[kind] = f"{kind}: cannot be read, taken as they were: {error}"
            return known
        self.notes.pop(kind, None)
        return found

    # --- volumes

    def _with_volumes(self, pods: Sequence[Pod], now: datetime) -> tuple[Pod, ...]:
        """Return the pods with the zones of their volumes, read when a pod comes and is bound."""
        claiming = {pod.uid: pod for pod in pods if pod.scheduling.claims}
        self._volume_terms = {
            uid: known
            for uid, known in self._volume_terms.items()
            if uid in claiming and known[0] == claiming[uid].node_name
        }
        asked = [pod for uid, pod in claiming.items() if uid not in self._volume_terms]
        if asked:
            scene = ClusterSnapshot(
                cluster="",
                taken_at=now,
                pending=tuple(map(as_pending, asked)),
                bound=(),
                nodes=(),
                provisioners=(),
                sites=(),
                daemonsets=(),
                slots=(),
                intents=(),
                instance_types=(),
            )
            resolved = self._read(_VOLUMES, lambda: self._cluster.with_volumes(scene), None)
            for pod in resolved.pending if resolved is not None else ():
                terms = pod.scheduling.volume_terms
                self._volume_terms[pod.uid] = (claiming[pod.uid].node_name, terms)
                if pod.scheduling.refusals:
                    self.notes[_VOLUMES] = (
                        f"{_VOLUMES}: those of pods such as {pod.key} are not known, and taken to "
                        "be in any zone"
                    )
        return tuple(
            replace(
                pod,
                scheduling=replace(
                    pod.scheduling,
                    claims=RESOLVED,
                    volume_terms=self._volume_terms.get(pod.uid, _NOT_KNOWN)[1],
                    ties=(),
                    shared=(),
                ),
            )
            if pod.uid in claiming
            else pod
            for pod in pods
        )
