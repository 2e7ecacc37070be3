"""Topology rules turned into things that can be counted.

A rule over hosts (a host port is one, too) becomes a pseudo resource `slot/<n>`: each node has a
certain number of them and each pod the rule counts takes some. A rule over zones (or capacity
types) pins pods to domains.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from shared.model import labels as keys
from shared.model.pods import (
    AffinityTerm,
    LabelSelector,
    Pod,
    Scheduling,
    SpreadPolicy,
    TopologySpread,
)
from shared.model.resources import Resources
from shared.scheduling.classes import PodClass

DOMAIN_KEYS: Final = frozenset({keys.ZONE, keys.CAPACITY_TYPE})
# A pod that wants a host for itself takes all slots of its rule, a pod it avoids takes one.
_WHOLE: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRule:
    """A rule over hosts.

    Attributes:
        namespaces: Whose pods it counts.
        capacity: Slots of an empty node.
        take: Slots a pod takes that has the rule.
        soft: Whether it is a preference (ScheduleAnyway).
        port: (protocol, number) of a host port that one pod of a node may have; else None.
    """

    name: str
    namespaces: tuple[str, ...]
    selector: LabelSelector
    capacity: int
    take: int
    soft: bool
    port: tuple[str, int] | None = None

    def counts(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Return whether a pod is one that the rule counts."""
        return namespace in self.namespaces and self.selector.selects(labels)


def host_rules(classes: Sequence[PodClass], standing: Iterable[Pod] = ()) -> tuple[HostRule, ...]:
    """Return the distinct rules over hosts of all classes, in order of first use.

    Args:
        standing: Pods on nodes: kube-scheduler keeps a pod away from a node where one stands
            whose required anti-affinity counts it, so these rules are kept, too.
    """
    found: dict[tuple[object, ...], HostRule] = {}
    for one in classes:
        for spread in one.scheduling.spreads:
            if spread.key == keys.HOSTNAME and spread.selector is not None:
                _add_spread(found, one.namespace, spread, spread.selector)
        for term in one.scheduling.anti_affinity:
            if term.key == keys.HOSTNAME and term.selector and term.weight is None:
                _add_anti_affinity(found, one.namespace, term, term.selector)
        for _, protocol, number in one.scheduling.host_ports:
            _add_port(found, (protocol, number))
    for pod in standing:
        for term in pod.scheduling.anti_affinity:
            if term.key == keys.HOSTNAME and term.selector and term.weight is None:
                _add_anti_affinity(found, pod.namespace, term, term.selector)
    return tuple(found.values())


def slots_taken(rules: Iterable[HostRule], one: PodClass, *, soft: bool) -> Resources:
    """Return the slots one pod of a class takes.

    Args:
        soft: Whether preferences are kept too.
    """
    taken = {}
    for rule in rules:
        if rule.soft and not soft:
            continue
        if _has_rule(rule, one.scheduling, one.namespace, one.labels):
            taken[rule.name] = rule.take
        elif rule.counts(one.namespace, one.labels):
            taken[rule.name] = 1
    return Resources.from_mapping(taken)


def slots_of_empty_node(rules: Iterable[HostRule]) -> Resources:
    """Return the slots a new node has."""
    return Resources.from_mapping({rule.name: rule.capacity for rule in rules})


def slots_left(rules: Iterable[HostRule], pods: Iterable[Pod]) -> Resources:
    """Return the slots a node has left that these pods stand on."""
    standing = tuple(pods)
    left = {}
    for rule in rules:
        used = 0
        for pod in standing:
            if _has_rule(rule, pod.scheduling, pod.namespace, pod.labels):
                used += rule.take
            elif rule.counts(pod.namespace, pod.labels):
                # One avoided pod is enough to keep away a pod that wants the whole host.
                used += 1
        left[rule.name] = rule.capacity - used
    return Resources.from_mapping(left)


def water_fill(counts: Mapping[str, int], pods: int) -> dict[str, int]:
    """Return how many of the pods each domain gets so that the totals are as even as they can be.

    Domains with the lowest count come first, ties by name.

    Example:
        >>> water_fill({"a": 3, "b": 0, "c": 1}, 4)
        {'a': 0, 'b': 3, 'c': 1}
    """
    given = dict.fromkeys(sorted(counts), 0)
    if not given:
        return given
    ordered = sorted(counts, key=lambda domain: (counts[domain], domain))
    left = pods
    for index, _ in enumerate(ordered):
        level_end = counts[ordered[index + 1]] if index + 1 < len(ordered) else None
        level = counts[ordered[index]]
        width = index + 1
        room = left if level_end is None else min(left, (level_end - level) * width)
        each, extra = divmod(room, width)
        for position, domain in enumerate(sorted(ordered[:width])):
            given[domain] += each + (1 if position < extra else 0)
        left -= room
    return given


def domain_spread(one: PodClass) -> TopologySpread | None:
    """Return the class's rule of even placement over zones or capacity types, or None.

    Of several the hard one with the smallest skew leads; the others can only be kept as far as
    even placement keeps them.
    """
    rules = [rule for rule in one.scheduling.spreads if rule.key in DOMAIN_KEYS and rule.selector]
    rules.sort(key=lambda rule: (rule.policy != SpreadPolicy.DO_NOT_SCHEDULE, rule.max_skew))
    return rules[0] if rules else None


def domain_term(terms: Iterable[AffinityTerm]) -> AffinityTerm | None:
    """Return the first required (anti-)affinity term over zones or capacity types, or None."""
    for term in terms:
        if term.weight is None and term.key in DOMAIN_KEYS and term.selector is not None:
            return term
    return None


def unsupported_rule(one: PodClass) -> str:
    """Return which required rule of the class cannot be planned for, empty when none."""
    for term in one.scheduling.affinity:
        if term.weight is None and term.key not in DOMAIN_KEYS:
            return f"required pod affinity over {term.key} is not planned for"
    for term in one.scheduling.anti_affinity:
        if term.weight is None and term.key not in DOMAIN_KEYS | {keys.HOSTNAME}:
            return f"required pod anti-affinity over {term.key} is not planned for"
    for spread in one.scheduling.spreads:
        known = spread.key in DOMAIN_KEYS or spread.key == keys.HOSTNAME
        if spread.policy == SpreadPolicy.DO_NOT_SCHEDULE and not known:
            return f"topology spread over {spread.key} is not planned for"
    return ""


def _add_spread(
    found: dict[tuple[object, ...], HostRule],
    namespace: str,
    spread: TopologySpread,
    selector: LabelSelector,
) -> None:
    soft = spread.policy == SpreadPolicy.SCHEDULE_ANYWAY
    identity = ("spread", namespace, selector, spread.max_skew, soft)
    if identity not in found:
        found[identity] = HostRule(
            name=f"slot/{len(found)}",
            namespaces=(namespace,),
            selector=selector,
            capacity=spread.max_skew,
            take=1,
            soft=soft,
        )


def _add_anti_affinity(
    found: dict[tuple[object, ...], HostRule],
    namespace: str,
    term: AffinityTerm,
    selector: LabelSelector,
) -> None:
    namespaces = term.namespaces or (namespace,)
    identity = ("anti-affinity", namespaces, selector)
    if identity not in found:
        found[identity] = HostRule(
            name=f"slot/{len(found)}",
            namespaces=namespaces,
            selector=selector,
            capacity=_WHOLE,
            take=_WHOLE,
            soft=False,
        )


def _add_port(found: dict[tuple[object, ...], HostRule], port: tuple[str, int]) -> None:
    if ("port", port) not in found:
        found["port", port] = HostRule(
            name=f"slot/{len(found)}",
            namespaces=(),
            selector=LabelSelector(),
            capacity=1,
            take=1,
            soft=False,
            port=port,
        )


def _has_rule(
    rule: HostRule, scheduling: Scheduling, namespace: str, labels: Mapping[str, str]
) -> bool:
    if rule.port is not None:
        # Addresses are not told apart: two pods of one port never share a node.
        return any((protocol, number) == rule.port for _, protocol, number in scheduling.host_ports)
    if rule.take == _WHOLE:
        return any(
            term.key == keys.HOSTNAME
            and term.weight is None
            and term.selector == rule.selector
            and (term.namespaces or (namespace,)) == rule.namespaces
            for term in scheduling.anti_affinity
        )
    return any(
        spread.key == keys.HOSTNAME
        and spread.selector == rule.selector
        and spread.max_skew == rule.capacity
        and (spread.policy == SpreadPolicy.SCHEDULE_ANYWAY) == rule.soft
        and rule.counts(namespace, labels)
        for spread in scheduling.spreads
    )
