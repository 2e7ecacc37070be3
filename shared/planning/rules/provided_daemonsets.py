"""Which DaemonSets nodes are chosen for: with room for their pods, or as if they did not exist.

A DaemonSet takes capacity on each node, whatever pods the node is launched for. Agents of the
cluster are meant to; but anyone who may create a DaemonSet in some namespace could make every node
more expensive, or stop all launches with one that no instance can hold. Karpenter counts each
(`getDaemonOverhead` in
https://github.com/kubernetes-sigs/karpenter/blob/v1.14.1/pkg/controllers/provisioning/scheduling/
scheduler.go, 2026-11-29). Here one that is out of all proportion is not counted. Its pods are
created all the same, and run where there is room: pods that a node was launched for are bound
before it is opened to others. The reasons are in
docs/decisions/0037-limits-on-daemonsets-and-running-pods.md.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from statistics import median_low
from typing import Final, NamedTuple

from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType
from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.kubernetes.taints import Toleration
from shared.model.provisioner import Provisioner
from shared.model.requirements import Requirements
from shared.model.resources import CPU, MEMORY, Resources, readable_amount
from shared.model.values import replace
from shared.planning.rules.daemon_overhead import NodeTerms, OpenValues
from shared.planning.rules.labels_and_taints import accepted_terms, taints_tolerated
from shared.planning.rules.provisioner_offerings import (
    as_configured,
    free_requirements,
    node_labels,
    place_values,
    types_allowed,
    usable_in_order,
)
from shared.planning.rules.recent import RecentCache

KUBE_SYSTEM: Final = frozenset({"kube-system"})
# Priority of system-cluster-critical. Source: https://kubernetes.io/docs/tasks/administer-cluster/
# guaranteed-scheduling-critical-addon-pods/ (2026-11-29).
CRITICAL: Final = 2_000_000_000
# Most DaemonSets of one namespace, and most expressions about nodes in all of them.
MOST_DAEMONSETS: Final = 32
MOST_EXPRESSIONS: Final = 256
# Most expressions of all namespaces together: each costs a plan about 0.2 ms.
MOST_OF_ALL: Final = 4_096
# Those of a namespace may request two thirds of what the median instance type offers.
_PART, _WHOLE = 2, 3
# Instances have about 4 GiB per vCPU: this many bytes weigh as much as a millicore.
_BYTES_A_MILLICORE: Final = 4 * 2**30 // 1000
_REMEDY: Final = (
    "nodes are chosen without room for it; for room on every node, add its namespace to the "
    "setting daemonset_namespaces"
)


class LeftOut(NamedTuple):
    """A DaemonSet that nodes are not chosen for, and the reason as text."""

    daemon_set: DaemonSet
    reason: str


class Provided(NamedTuple):
    """DaemonSets that nodes are chosen for, and the others, each in the order given."""

    daemonsets: tuple[DaemonSet, ...]
    left_out: tuple[LeftOut, ...]


class _ConfiguredType(NamedTuple):
    """One instance type as one Provisioner configures it, and its labels that are still open."""

    provisioner: Provisioner
    labels: Mapping[str, str]
    undecided: OpenValues
    allocatable: Mapping[str, int]


_Buyable = tuple[tuple[Provisioner, ...], tuple[InstanceType, ...]]
_CONFIGURED_TYPES: Final[RecentCache[_Buyable, tuple[_ConfiguredType, ...]]] = RecentCache(8)
_FAULTS: Final[RecentCache[tuple[_Buyable, tuple[DaemonSet, ...]], Mapping[int, str]]] = (
    RecentCache(8)
)


def provided_daemonsets(
    daemonsets: Sequence[DaemonSet],
    provisioners: Iterable[Provisioner],
    instance_types: tuple[InstanceType, ...],
    always: Collection[str] = KUBE_SYSTEM,
) -> Provided:
    """Return the DaemonSets that nodes are chosen for, and the others.

    Nodes are chosen for those of the namespaces `always`, and those whose priority is that of
    system-cluster-critical or above. Those of another namespace are included smallest first, as
    long as together they request at most two thirds of the median of the instance types that they
    can run on, and have at most 256 expressions about nodes, 4,096 with those of all other
    namespaces. If a namespace has more than 32, none of them is included.

    Args:
        daemonsets: Those whose pods are created.
        provisioners: Of the cluster.
        instance_types: What can be launched, sorted by name.
        always: Namespaces whose DaemonSets are always included.
    """
    ordinary = {
        number: daemon_set
        for number, daemon_set in enumerate(daemonsets)
        if daemon_set.namespace not in always and daemon_set.scheduling.priority < CRITICAL
    }
    if not ordinary:
        return Provided(tuple(daemonsets), ())
    # Each status update makes another version, which launches the same.
    owners = tuple(
        replace(owner, resource_version="", generation=0) for owner in usable_in_order(provisioners)
    )
    faults = _FAULTS.get(((owners, instance_types), tuple(ordinary.values())), _faults)
    left = {number: faults[at] for at, number in enumerate(ordinary) if at in faults}
    return Provided(
        tuple(daemon_set for number, daemon_set in enumerate(daemonsets) if number not in left),
        tuple(LeftOut(daemonsets[number], reason) for number, reason in left.items()),
    )


def _faults(question: tuple[_Buyable, tuple[DaemonSet, ...]]) -> Mapping[int, str]:
    """Return, by index, why nodes are not chosen for DaemonSets."""
    buyable, ordinary = question
    configured_types = _CONFIGURED_TYPES.get(buyable, lambda _: tuple(_configured_types(buyable)))
    of_namespace: dict[str, list[int]] = defaultdict(list)
    for number, daemon_set in enumerate(ordinary):
        of_namespace[daemon_set.namespace].append(number)
    medians: dict[object, Resources] = {}
    found: dict[int, str] = {}
    of_all = 0
    # Those with few first: no namespace can take what the others need.
    for some in sorted(
        of_namespace.values(),
        key=lambda some: sum(_expressions(ordinary[number]) for number in some),
    ):
        if len(some) > MOST_DAEMONSETS:
            fault = f"its namespace has {len(some)} DaemonSets, more than {MOST_DAEMONSETS}"
            found.update(dict.fromkeys(some, f"{fault}: {_REMEDY}"))
            continue
        taken, expressions = Resources(), 0
        for number in sorted(some, key=lambda number: _size(ordinary[number])):
            asked = ordinary[number].scheduling
            place = (accepted_terms(asked), asked.tolerations)
            more = _expressions(ordinary[number])
            if expressions + more > MOST_EXPRESSIONS:
                fault = (
                    f"with its {more} expressions about nodes the DaemonSets of its namespace have "
                    f"more than {MOST_EXPRESSIONS}"
                )
            elif of_all + more > MOST_OF_ALL:
                fault = (
                    f"with its {more} expressions about nodes the DaemonSets of all namespaces "
                    f"have more than {MOST_OF_ALL:,}"
                )
            else:
                if place not in medians:
                    medians[place] = _median(configured_types, *place)
                fault = _too_large(asked.requests, taken, medians[place])
            if fault:
                found[number] = f"{fault}: {_REMEDY}"
            else:
                taken, expressions = taken + asked.requests, expressions + more
                of_all += more
    return found


def _expressions(one: DaemonSet) -> int:
    """Return how many expressions about nodes a DaemonSet has."""
    return sum(len(term.items) for term in accepted_terms(one.scheduling))


def _size(daemon_set: DaemonSet) -> tuple[int, int, str]:
    """Sort key: what a DaemonSet requests, then its number of terms and its name."""
    asked = daemon_set.scheduling
    weight = max(asked.requests[CPU], asked.requests[MEMORY] // _BYTES_A_MILLICORE)
    return (weight, len(asked.required_terms), daemon_set.name)


def _too_large(asked: Resources, taken: Resources, median: Resources) -> str:
    """Return why a DaemonSet takes too much beside others of its namespace, empty if it does not.

    A resource that the median instance type lacks is no concern of other pods.
    """
    for name, amount in asked.items:
        most = median[name]
        if most and _WHOLE * (taken[name] + amount) > _PART * most:
            both = f", with others of its namespace {readable_amount(name, taken[name] + amount)}"
            return (
                f"each of its pods requests {name} {readable_amount(name, amount)}"
                f"{both if taken[name] else ''}: more than two thirds of the median of the "
                f"instance types they can run on ({readable_amount(name, most)})"
            )
    return ""


def _median(
    configured_types: Iterable[_ConfiguredType],
    terms: Sequence[Requirements],
    tolerations: Sequence[Toleration],
) -> Resources:
    """Return, by resource, the median of the instance types that such pods can run on."""
    amounts: dict[str, list[int]] = defaultdict(list)
    asked = NodeTerms(terms)
    for configured_type in configured_types:
        if taints_tolerated(configured_type.provisioner.taints, tolerations) and asked.accept(
            configured_type.labels, configured_type.undecided
        ):
            for name, amount in configured_type.allocatable.items():
                amounts[name].append(amount)
    return Resources.from_mapping({name: median_low(some) for name, some in amounts.items()})


def _configured_types(buyable: _Buyable) -> Iterator[_ConfiguredType]:
    owners, instance_types = buyable
    for owner in owners:
        fixed = node_labels(owner)
        left_open = {found.key: None for found in free_requirements(owner)} | {keys.ZONE_ID: None}
        for instance_type in types_allowed(owner, instance_types):
            configured_type = as_configured(owner, instance_type)
            yield _ConfiguredType(
                provisioner=owner,
                labels={**configured_type.labels, **fixed},
                undecided={**left_open, **place_values(instance_type.offerings)},
                allocatable=dict(configured_type.allocatable.items),
            )
