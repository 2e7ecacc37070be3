"""Bundles: pods of several groups that must share a host, packed as one.

The packer knows only amounts, not that a pod needs another one beside it. So pods that must be on a
host with pods of another group, their lead, are dealt evenly to these, and each such part is packed
like one large pod. There are as many parts as pods to deal to, unless fewer and larger ones fill
instances better. Once nodes are packed, the pods are placed one by one, each where its part has
room.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from shared.model import labels as keys
from shared.model.resources import Resources
from shared.model.values import replace
from shared.planning.offerings.offering_index import OfferingIndex
from shared.planning.offerings.pending_group import PendingGroup
from shared.planning.rules.node_constraints import NodeConstraints
from shared.planning.rules.topology.constraints import (
    Affinity,
    Spread,
    TopologyConstraints,
    accepts,
)
from shared.planning.rules.topology.counts import DomainCounter, Place, add
from shared.planning.state import PlanState

# Numbers of parts that are tried, and a price above all others.
_NUMBERS: Final = 12
_UNREACHABLE_PRICE: Final = float(1 << 60)
# Groups, each with its number of pods in one part.
Members = Sequence[tuple[PendingGroup, int]]


class Bundle(PendingGroup):
    """Equal parts of several pending groups, which are packed like the pods of one.

    Attributes:
        members: The groups, each with its number of pods in one part; those that others follow come
            first.
        parts: How many parts there are.
    """

    __slots__ = ("members", "parts")

    def __init__(
        self,
        index: int,
        members: Members,
        parts: int,
        node_constraints: NodeConstraints,
    ) -> None:
        first = members[0][0]
        self.index = index
        self.members = tuple(members)
        self.parts = parts
        self.pod_class = first.pod_class
        self.priority = max(member.priority for member, _ in members)
        self.waiting = first.waiting[:parts]
        self.ports = tuple(port for member, count in members for port in member.ports * count)
        self.shared_volumes = tuple(
            dict.fromkeys(pair for member, _ in members for pair in member.shared_volumes)
        )
        self.requests = Resources.total(member.requests.times(count) for member, count in members)
        self.limited_provisioners = set[str]().union(
            *(member.limited_provisioners for member, _ in members)
        )
        self._active = (_topology_of(members), node_constraints)


def _topology_of(members: Members) -> TopologyConstraints:
    """Return the rules of a bundle: those of its pods that no pod of the bundle fulfils."""
    topologies = [(member.topology, count) for member, count in members]
    inside = {counter for topology, _ in topologies for counter in topology.profile}
    profile = tuple(
        counter
        for topology, count in topologies
        for counter in topology.profile
        for _ in range(count)
    )
    spreads: dict[tuple[object, int], Spread] = {}
    for topology, _ in topologies:
        for spread in topology.spreads:
            # A part adds this many pods to a domain at once: no smaller skew can be kept.
            own = sum(counter is spread.counter for counter in profile)
            skew = max(spread.max_skew, own)
            spreads[spread.counter, skew] = replace(spread, self_match=own, max_skew=skew)
    return TopologyConstraints(
        profile=profile,
        spreads=tuple(spreads.values()),
        affinities=tuple(
            rule
            for topology, _ in topologies
            for rule in topology.affinities
            if not inside.issuperset(rule.counters)
        ),
        avoids=tuple(
            dict.fromkeys(counter for topology, _ in topologies for counter in topology.avoids)
        ),
        avoided_by=tuple(
            dict.fromkeys(counter for topology, _ in topologies for counter in topology.avoided_by)
        ),
        keys=tuple(sorted({key for topology, _ in topologies for key in topology.keys})),
        has_host_rules=any(topology.has_host_rules for topology, _ in topologies),
    )


def bundled(
    plan_state: PlanState, waiting: Sequence[PendingGroup]
) -> tuple[list[PendingGroup], list[Bundle]]:
    """Return the waiting groups that are packed by themselves, and the bundles of the others."""
    leads = _leads(waiting)
    found: list[Bundle] = []
    for part in _connected(waiting, leads) if leads else ():
        found += _bundles_of(plan_state, part, leads, len(plan_state.pod_groups) + len(found))
    taken = {member.index for bundle in found for member, _ in bundle.members}
    return [pod_group for pod_group in waiting if pod_group.index not in taken], found


def _leads(pod_groups: Iterable[PendingGroup]) -> dict[int, list[PendingGroup]]:
    """Return the leads by index of the group whose pods must be on a host with theirs.

    There is one lead for each rule: of the groups that the rule selects, the one with most pods.
    """
    rules = [
        (pod_group, rule)
        for pod_group in pod_groups
        for rule in pod_group.topology.affinities
        if _is_over_hosts(rule) and not rule.self_match
    ]
    followed: dict[DomainCounter, list[PendingGroup]] = {
        counter: [] for _, rule in rules for counter in rule.counters
    }
    for pod_group in pod_groups if followed else ():
        for counter in pod_group.topology.profile:
            if counter in followed:
                followed[counter].append(pod_group)
    lead_of: dict[tuple[DomainCounter, ...], PendingGroup | None] = {}
    found: dict[int, list[PendingGroup]] = {}
    for pod_group, rule in rules:
        if rule.counters not in lead_of:
            lead_of[rule.counters] = max(
                (
                    other
                    for other in followed[rule.counters[0]]
                    if set(rule.counters) <= set(other.topology.profile)
                ),
                key=lambda entry: (len(entry.waiting), -entry.index),
                default=None,
            )
        lead = lead_of[rule.counters]
        if lead is not None and lead not in found.setdefault(pod_group.index, []):
            found[pod_group.index].append(lead)
    return found


def _is_over_hosts(rule: Affinity) -> bool:
    return any(counter.key == keys.HOSTNAME for counter in rule.counters)


def _connected(
    pod_groups: Sequence[PendingGroup], leads: Mapping[int, Sequence[PendingGroup]]
) -> list[list[PendingGroup]]:
    """Return sets of groups that follow each other, each set in order: leads before followers.

    Groups that follow each other in a cycle are left out: none of their pods could be the first.
    """
    followers: dict[int, list[PendingGroup]] = {}
    for pod_group in pod_groups:
        for lead in leads.get(pod_group.index, ()):
            followers.setdefault(lead.index, []).append(pod_group)
    missing = {pod_group.index: len(leads.get(pod_group.index, ())) for pod_group in pod_groups}
    ready = [pod_group for pod_group in pod_groups if not missing[pod_group.index]]
    part_of: dict[int, list[PendingGroup]] = {}
    for pod_group in ready:  # which grows
        part: list[PendingGroup] = []
        for lead in leads.get(pod_group.index, ()):
            other = part_of[lead.index]
            if not part:
                part = other
            elif other is not part:
                part += other
                part_of.update(dict.fromkeys([entry.index for entry in other], part))
        part.append(pod_group)
        part_of[pod_group.index] = part
        for follower in followers.get(pod_group.index, ()):
            missing[follower.index] -= 1
            if not missing[follower.index]:
                ready.append(follower)
    parts = {id(part): part for part in part_of.values()}
    return [part for part in parts.values() if len(part) > 1]


def _bundles_of(
    plan_state: PlanState,
    part: Sequence[PendingGroup],
    leads: Mapping[int, Sequence[PendingGroup]],
    index: int,
) -> list[Bundle]:
    """Return the bundles of connected groups, leads that no part needs as bundles of their own."""
    followers = [pod_group for pod_group in part if pod_group.index in leads]
    roots = [pod_group for pod_group in part if pod_group.index not in leads]
    required = {lead.index: lead for pod_group in followers for lead in leads[pod_group.index]}
    most = max(len(pod_group.waiting) for pod_group in followers)
    number = min(most, *(len(lead.waiting) for lead in required.values()))
    node_constraints = _common(plan_state.offerings, part)
    splits = [
        _split(roots, followers, parts, node_constraints) for parts in _numbers(number, followers)
    ]
    if len(splits) > 1:
        steps = len(splits) * len(plan_state.table.offers)
        plan_state.work.spend_each({pod_group.index: steps // len(part) for pod_group in part})
        splits.sort(
            key=lambda split: sum(
                many * _price_of_one(plan_state, members, of_nodes)
                for many, members, of_nodes in split
            )
        )
    found: list[Bundle] = []
    for many, members, of_nodes in splits[0]:
        bundle = Bundle(index + len(found), members, many, of_nodes)
        if not _may_share(members) or not plan_state.offerings.could_hold(
            of_nodes, bundle.requests_with(())
        ):
            return []
        found.append(bundle)
    return found


def _numbers(number: int, followers: Sequence[PendingGroup]) -> list[int]:
    """Return the numbers of parts to try, the largest possible first.

    Pods that are spread over domains can only be dealt out evenly in small parts.
    """
    found = [number]
    if any(pod_group.topology.spreads for pod_group in followers):
        return found
    least = max(-(-len(pod_group.waiting) // _most_on_a_host(pod_group)) for pod_group in followers)
    while found[-1] > least and len(found) < _NUMBERS:
        found.append(max(found[-1] * 4 // 5, least))
    return found


def _price_of_one(
    plan_state: PlanState, members: Members, node_constraints: NodeConstraints
) -> float:
    """Return the price of a part on the instance that is cheapest per part when full of them."""
    table = plan_state.table
    accepted = plan_state.offerings.accepting(node_constraints)
    requests = dict(Resources.total(member.requests.times(n) for member, n in members).items)
    alone = not _may_share([(member, 2 * count) for member, count in members])
    best = _UNREACHABLE_PRICE
    for offer, some in table.by_size:
        able = some & accepted
        if able:
            available = dict(table.offers[offer].available.items)
            fitting = min(available.get(name, 0) // amount for name, amount in requests.items())
            if fitting > 0:
                price = table.cheapest(able).offering.price_micros_per_hour
                best = min(best, price / (1 if alone else fitting))
    return best


def _common(offerings: OfferingIndex, part: Iterable[PendingGroup]) -> NodeConstraints:
    """Return the node constraints of nodes that all of these groups accept."""
    node_constraints_list = [pod_group.node_constraints for pod_group in part]
    terms = node_constraints_list[0].terms
    for node_constraints in node_constraints_list[1:]:
        terms = tuple(term.merge(other) for term in terms for other in node_constraints.terms)
    tolerations = [
        toleration
        for toleration in node_constraints_list[0].tolerations
        if all(
            toleration in node_constraints.tolerations for node_constraints in node_constraints_list
        )
    ]
    return offerings.intern(
        NodeConstraints(
            terms=terms,
            tolerations=tuple(tolerations),
            strict=any(node_constraints.strict for node_constraints in node_constraints_list),
            ports=tuple(
                port
                for node_constraints in node_constraints_list
                for port in node_constraints.ports
            ),
        )
    )


def _most_on_a_host(pod_group: PendingGroup) -> int:
    """Return how many pods of a group its own rules allow on a new host."""
    if pod_group.ports:
        return 1
    topology, most = pod_group.topology, len(pod_group.waiting)
    own = set(topology.profile)
    if any(counter.key == keys.HOSTNAME and counter in own for counter in topology.avoids):
        return 1
    for spread in topology.spreads:
        if spread.counter.key == keys.HOSTNAME and spread.self_match:
            most = min(most, spread.max_skew)
    return most


def _split(
    roots: Sequence[PendingGroup],
    followers: Sequence[PendingGroup],
    number: int,
    node_constraints: NodeConstraints,
) -> Sequence[tuple[int, Members, NodeConstraints]]:
    """Return parts, as even as possible: (number of parts, pods of each group, node constraints).

    Lead pods that no part needs are parts of their own.
    """
    found: list[tuple[int, Members, NodeConstraints]] = []
    # If the pods of a group do not divide evenly, the first parts have one more of them.
    cuts = {0, number, *(len(pod_group.waiting) % number for pod_group in followers)}
    for first, end in pairwise(sorted(cuts)):
        members = [(root, 1) for root in roots]
        for pod_group in followers:
            count = len(pod_group.waiting)
            assigned = count // number + (first < count % number)
            if assigned:
                members.append((pod_group, min(assigned, _most_on_a_host(pod_group))))
        found.append((end - first, members, node_constraints))
    return found + [
        (len(root.waiting) - number, [(root, 1)], root.node_constraints)
        for root in roots
        if len(root.waiting) > number
    ]


def _may_share(members: Members) -> bool:
    """Return whether rules over hosts let the pods of one part share a new host."""
    host = Place("", {keys.HOSTNAME: "\x00"}, is_domain=True)
    placed = []
    good = True
    for member, count in members:
        topology = member.topology
        only_hosts = replace(
            topology,
            spreads=tuple(rule for rule in topology.spreads if rule.counter.key == keys.HOSTNAME),
            affinities=tuple(filter(_is_over_hosts, topology.affinities)),
            avoids=tuple(rule for rule in topology.avoids if rule.key == keys.HOSTNAME),
            avoided_by=tuple(rule for rule in topology.avoided_by if rule.key == keys.HOSTNAME),
        )
        for _ in range(count):
            good = good and accepts(only_hosts, host.labels)
            add(topology.profile, host)
            placed.append(topology.profile)
    for profile in placed:
        add(profile, host, -1)
    return good
