"""Pods of DaemonSets on nodes to be launched, where the rules of other pods count them."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.kubernetes.taints import Taint
from shared.planning.rules.daemon_overhead import runs_on
from shared.planning.rules.topology.counts import Profile
from shared.planning.rules.topology.rules import TopologyRules

# DaemonSets with what their pods add to the topology counts.
CountedDaemonSets = tuple[tuple[DaemonSet, Profile], ...]


def counted_daemonsets(
    daemonsets: Iterable[DaemonSet], topology_rules: TopologyRules
) -> CountedDaemonSets:
    """Return the DaemonSets whose pods any rule counts, or that keep others away; usually none.

    All rules must be registered before.
    """
    profiles = (
        (
            daemon_set,
            topology_rules.profile(
                daemon_set.namespace, daemon_set.labels, daemon_set.scheduling, existing=True
            ),
        )
        for daemon_set in daemonsets
    )
    return tuple(pair for pair in profiles if pair[1])


def daemonset_pods(
    counted: CountedDaemonSets,
    labels: Mapping[str, str],
    taints: Sequence[Taint],
    present: Collection[tuple[str, str]] = (),
) -> tuple[Profile, ...]:
    """Return what the DaemonSet pods that such a node will get add to the topology counts.

    Args:
        counted: The DaemonSets that count.
        labels: Of the node.
        taints: Of the node, without those that are removed while it starts.
        present: Namespace and name of DaemonSets whose pods are there already.
    """
    return tuple(
        profile
        for daemon_set, profile in counted
        if (daemon_set.namespace, daemon_set.name) not in present
        and runs_on(daemon_set, labels, taints)
    )
