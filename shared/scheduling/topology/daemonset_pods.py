"""Companions: pods of DaemonSets that rules of other pods count on nodes still to come."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from shared.model import labels as keys
from shared.model.kubernetes.daemonsets import DaemonSet
from shared.model.kubernetes.taints import Taint
from shared.scheduling.daemon_overhead import runs_on
from shared.scheduling.topology.compile import TopologyRules
from shared.scheduling.topology.counts import NOTHING, Profile


class DaemonSetPods:
    """The DaemonSets whose pods any rule counts, or that keep others away; mostly there are none.

    Attributes:
        keys: Topology keys but the host's of the rules that count them.
    """

    def __init__(self, daemonsets: Iterable[DaemonSet], book: TopologyRules) -> None:
        """Find them; all rules must be registered in the rule book."""
        profiles = [
            (
                daemon_set,
                book.profile(daemon_set.namespace, daemon_set.labels, daemon_set.scheduling),
            )
            for daemon_set in daemonsets
        ]
        self._counted = tuple(pair for pair in profiles if pair[1] is not NOTHING)
        self.keys = frozenset(
            counter.key for _, profile in self._counted for counter in profile.adds
        ) - {keys.HOSTNAME}

    def __bool__(self) -> bool:
        return bool(self._counted)

    def of(
        self,
        labels: Mapping[str, str],
        taints: Sequence[Taint],
        present: Collection[tuple[str, str]] = (),
    ) -> tuple[Profile, ...]:
        """Return what the pods of DaemonSets add that such a node will get.

        Args:
            labels: Of the node.
            taints: Of the node, those left out that go while it starts.
            present: Namespace and name of DaemonSets whose pods are there already.
        """
        if not self._counted:
            return ()
        return tuple(
            profile
            for daemon_set, profile in self._counted
            if (daemon_set.namespace, daemon_set.name) not in present
            and runs_on(daemon_set, labels, taints)
        )
