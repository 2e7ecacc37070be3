"""Why the plan puts a pod where it does, as lines of text."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from functions.cli.plan.cost_of_rules import rules_in_words
from functions.cli.printable_text import number_ranges
from shared.model.dollars_and_counts import counted, dollars, first_names
from shared.model.ec2.launches import LaunchOption, PlannedNode, PodRef
from shared.model.kubernetes.pods import DEFAULT_SCHEDULER, Pod, Scheduling
from shared.model.kubernetes.taints import Taint
from shared.model.nearest import nearest
from shared.model.plan import Plan
from shared.model.provisioner import Provisioner
from shared.model.resources import Resources, readable_amount
from shared.model.snapshot import ClusterSnapshot
from shared.planning.offerings.offering_index import OfferingIndex
from shared.planning.offerings.offering_table import ProvisionerPicks, offering_table
from shared.planning.offerings.picks import label_choices
from shared.planning.reasons import Reasons
from shared.planning.rules.existing_nodes import existing_nodes
from shared.planning.rules.labels_and_taints import accepted_terms, labels_accepted, taint_refusal
from shared.planning.rules.node_constraints import node_constraints_of
from shared.planning.rules.pod_classes import PodClass
from shared.planning.rules.provisioner_offerings import (
    ProvisionerOffering,
    place_labels,
    usable_in_order,
)
from shared.planning.setting_aside import ref_of

_MOST_NEAR: Final = 3
_WITH_IT: Final = 10


def find_pod(snapshot: ClusterSnapshot, key: str) -> Pod | None:
    """Return the pod of this `namespace/name` (`default/` may be left out), or None."""
    wanted = _full_key(key)
    return next((pod for pod in (*snapshot.pending, *snapshot.bound) if pod.key == wanted), None)


def keys_near(snapshot: ClusterSnapshot, key: str) -> tuple[str, ...]:
    """Return `namespace/name` of up to three pods that could be meant, sorted.

    These are pods of any namespace whose names begin with this name: the names of a workload's pods
    are generated, so `web` most likely means `web-0`. Where there are none, the pod whose name is
    nearest, else the first of each workload.
    """
    known = sorted(pod.key for pod in (*snapshot.pending, *snapshot.bound))
    name = key.rpartition("/")[2]
    alike = [value for value in known if name and value.partition("/")[2].startswith(name)]
    if alike:
        return tuple(alike[:_MOST_NEAR])
    first = {_workload(value): value for value in reversed(known)}
    if near := nearest(_workload(key), first):
        return (first[near],)
    return tuple(sorted(first.values())[:_MOST_NEAR])


def _workload(key: str) -> str:
    """Return the name of a pod without its namespace and number."""
    return key.rpartition("/")[2].rstrip("0123456789")


def _full_key(key: str) -> str:
    return key if "/" in key else f"default/{key}"


def explanation(snapshot: ClusterSnapshot, plan: Plan, pod: Pod) -> tuple[str, ...]:
    """Return what the pod requests, where it goes and what each Provisioner could launch for it."""
    asked = ", ".join(f"{k} {readable_amount(k, v)}" for k, v in pod.scheduling.requests.items)
    owners = {owner.name: owner.kind for owner in snapshot.provisioners}
    outcome = tuple(_outcome(plan, pod, owners))
    shown = {line.strip() for line in outcome}
    choices = (line for line in _choices(snapshot, pod) if line not in shown)
    bound_by = of_other_scheduler(pod)
    not_on_nodes = (
        *_why_not_on_existing(snapshot, plan, pod),
        *_why_not_on_other_new(snapshot, plan, pod),
    )
    return (
        f"{pod.key} asks for {asked}",
        *([bound_by] if bound_by else []),
        *(*outcome, *not_on_nodes, *choices),
    )


def of_other_scheduler(pod: Pod) -> str:
    """Return a note if another scheduler than kube-scheduler binds the pod; empty if not."""
    name = pod.scheduling.scheduler_name
    if name == DEFAULT_SCHEDULER or not pod.is_provisionable:
        return ""
    return f"scheduler {name} chooses its node: the plan is by the rules of kube-scheduler"


def _outcome(plan: Plan, pod: Pod, owners: Mapping[str, str]) -> Iterator[str]:
    ref = ref_of(pod)
    if pod.node_name:
        yield f"it is on node {pod.node_name} already"
        return
    if reason := pod.why_not_provisionable:
        yield f"it {reason}"
        return
    there = [placement.node for placement in plan.placements if ref in placement.pods]
    new = [(n, node) for n, node in enumerate(plan.nodes, 1) if ref in node.pods]
    refused = [pod_left for pod_left in plan.unschedulable if pod_left.pod == ref]
    if there:
        yield f"goes to node {there[0]}, which has room: nothing is launched for it"
    elif new:
        yield from _on_new(*new[0], ref, owners)
    elif refused:
        yield "has no place in this plan:" if refused[0].later else "fits nothing:"
        yield from (f"  {reason}" for reason in refused[0].reasons)
    else:
        yield "it is promised to a node that was launched before"


def _why_not_on_existing(snapshot: ClusterSnapshot, plan: Plan, pod: Pod) -> Iterator[str]:
    """Yield why a pending pod goes to none of the existing nodes, one line per reason."""
    ref = ref_of(pod)
    taken = {placement.node: placement.pods for placement in plan.placements}
    if not pod.is_provisionable or any(ref in refs for refs in taken.values()):
        return
    requests = {ref_of(other): other.scheduling.requests for other in snapshot.pending}
    found = existing_nodes(snapshot)
    left = {
        existing.name: existing.available
        - Resources.total(requests[to] for to in taken.get(existing.name, ()))
        for existing in found
    }
    reasons: dict[str, list[str]] = {}
    for existing in found:
        reason = _refusal(existing.taints, existing.labels, left[existing.name], pod.scheduling)
        reasons.setdefault(reason, []).append(existing.name)
    for node in snapshot.nodes:
        if node.name not in left:
            closed = "cordoned" if node.unschedulable else "being deleted or not Ready"
            reasons.setdefault(closed, []).append(node.name)
    for reason, names in sorted(reasons.items()):
        yield f"not on {first_names(sorted(names))}: {reason}"


def _why_not_on_other_new(snapshot: ClusterSnapshot, plan: Plan, pod: Pod) -> Iterator[str]:
    """Yield why a pending pod goes to none of the other new nodes, one line per reason."""
    ref = ref_of(pod)
    if not pod.is_provisionable or any(ref in placed.pods for placed in plan.placements):
        return
    taints = {owner.name: owner.taints for owner in snapshot.provisioners}
    of_type = {found.name: found.labels for found in snapshot.instance_types}
    reasons: dict[str, list[int]] = {}
    for number, node in enumerate(plan.nodes, 1):
        if ref in node.pods:
            continue
        option = node.options[0]
        key = option.offering
        labels = {**of_type[key.instance_type], **node.labels, **key.labels}
        left = option.allocatable - node.requests - node.daemon_requests
        reason = _refusal(taints[node.provisioner], labels, left, pod.scheduling)
        reasons.setdefault(reason, []).append(number)
    for reason, numbers in sorted(reasons.items()):
        yield f"not on new node {number_ranges(numbers)}: {reason}"


def _refusal(
    taints: Sequence[Taint], labels: Mapping[str, str], left: Resources, scheduling: Scheduling
) -> str:
    if refusal := taint_refusal(scheduling, taints):
        return refusal
    if not labels_accepted(scheduling, labels):
        return "labels or volumes that it needs are elsewhere"
    if short := scheduling.requests.exceeding(left):
        return f"too little {', '.join(short)} is left"
    if rules := rules_in_words(scheduling):
        return f"it has room, but the pod's rules forbid it: {', '.join(rules)}"
    return "it has room: rules of other pods forbid it, or its own node is needed anyway"


def _on_new(
    number: int, node: PlannedNode, ref: PodRef, owners: Mapping[str, str]
) -> Iterator[str]:
    option = node.options[0]
    used = node.requests + node.daemon_requests
    others = len(node.pods) - 1
    yield (
        f"goes to new node {number} of {owners[node.provisioner]} {node.provisioner}: "
        f"{_named(option)}, with {counted(others, 'other pod')}; {filled(used, option.allocatable)}"
    )
    if others:
        names = sorted(other.key for other in node.pods if other != ref)
        yield f"with it: {first_names(names, _WITH_IT)}"
    if len(node.options) > 1:
        last = node.options[-1]
        yield (
            f"{len(node.options)} options hold the same pods, from {_named(option)} "
            f"to {_named(last)}: EC2 may give any of them"
        )


def filled(used: Resources, allocatable: Resources) -> str:
    """Return how much of what a node offers is used, as in "filled cpu 26 %, memory 7 %"."""
    shares = (
        f"{name} {round(100 * used[name] / amount)} %"
        for name, amount in allocatable.items
        if used[name] and amount
    )
    return f"filled {', '.join(shares) or 'by nothing'}"


def _named(option: LaunchOption) -> str:
    key = option.offering
    price = dollars(option.price_micros_per_hour)
    return f"{key.instance_type} {key.zone} {key.capacity_type.value} {price}/h"


def _choices(snapshot: ClusterSnapshot, pod: Pod) -> Iterator[str]:
    pod_class = PodClass(
        namespace=pod.namespace, scheduling=pod.scheduling, labels=pod.labels, pods=()
    )
    explainer = Reasons(snapshot)
    for provisioner in usable_in_order(snapshot.provisioners):
        reason = explainer.why(provisioner, pod_class)
        if reason:
            yield f"{provisioner.name}: {reason}"
            continue
        able = [
            (
                offering.price_micros_per_hour,
                offer.instance_type.name,
                offering.zone,
                offering.capacity_type.value,
            )
            for offer in usual_offers(snapshot, provisioner, pod)
            if pod.scheduling.requests.fits(offer.available)
            for offering in offer.offerings
            if labels_accepted(pod.scheduling, {**offer.labels, **place_labels(offering)})
        ]
        price, *cheapest = min(able)
        types = len({name for _, name, _, _ in able})
        yield (
            f"{provisioner.name}: {counted(types, 'instance type')} ({len(able)} offerings) could "
            f"hold it alone, the cheapest {' '.join(cheapest)} at {dollars(price)}/h"
        )


def usual_offers(
    snapshot: ClusterSnapshot, owner: Provisioner, pod: Pod
) -> tuple[ProvisionerOffering, ...]:
    """Return what an owner could launch, without types that this pod neither names nor needs.

    Burstable types, bare metal and accelerators are left out so, unless there is nothing else.
    """
    site = next(site for site in snapshot.sites if site.provisioner == owner.name)
    choices = label_choices(owner, accepted_terms(pod.scheduling))
    table = offering_table(
        (ProvisionerPicks(provisioner=owner, site=site, picks=tuple(choices)),),
        snapshot.instance_types,
        snapshot.daemonsets,
        snapshot.unavailable,
    )
    index, wanted = OfferingIndex(table, ()), node_constraints_of(pod.scheduling)
    index.leave_out_special((index.suited((wanted,), pod.scheduling.requests, ()),))
    left_out = {option.offer for option in table.of_mask(index.unasked(wanted))}
    usual = tuple(offer for n, offer in enumerate(table.offers) if n not in left_out)
    return usual or table.offers
