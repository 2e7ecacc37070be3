"""Why a new node of a plan is of no cheaper instance type, as lines of text."""

from collections.abc import Iterator

from functions.cli.plan.cost_of_rules import rules_in_words
from functions.cli.plan.explanation import usual_offers
from shared.model.dollars_and_counts import counted, dollars, first_names
from shared.model.ec2.launches import PlannedNode
from shared.model.kubernetes.pods import Pod
from shared.model.plan import Plan
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from shared.planning.rules.labels_and_taints import labels_accepted
from shared.planning.rules.provisioner_offerings import (
    ProvisionerOffering,
    place_labels,
)
from shared.planning.setting_aside import ref_of


def why_not_cheaper(
    snapshot: ClusterSnapshot, plan: Plan, pod: Pod, settings: PackingSettings
) -> Iterator[str]:
    """Yield why the new node of a pod is of no cheaper instance type that its owner may launch.

    The last line is what its pods would cost on cheaper instance types, planned alone. Nothing is
    yielded for a pod that goes to no new node.
    """
    ref = ref_of(pod)
    node = next((node for node in plan.nodes if ref in node.pods), None)
    if node is None:
        return
    of_ref = {ref_of(other): other for other in snapshot.pending}
    pods = tuple(of_ref[other] for other in node.pods)
    price = node.options[0].price_micros_per_hour
    owner = next(owner for owner in snapshot.provisioners if owner.name == node.provisioner)
    reasons: dict[str, dict[str, int]] = {}
    for offer in _cheaper(snapshot, node, pod, price):
        of_type = reasons.setdefault(_reason(offer, node, pods), {})
        of_type.setdefault(offer.instance_type.name, -offer.offerings[0].price_micros_per_hour)
    if not reasons:
        yield f"no instance type that {owner.kind} {owner.name} may launch is cheaper"
        return
    for reason, names in sorted(reasons.items()):
        # The dearest are the nearest: their lack tells most.
        dearest = sorted(names, key=lambda name: (names[name], name))
        if reason:
            yield f"not on a cheaper type, {first_names(dearest)}: {reason}"
        else:
            yield f"cheaper ones could hold its pods: {first_names(dearest)}"
    yield _alone(replace(snapshot, provisioners=(owner,)), pods, price, settings)


def _cheaper(
    snapshot: ClusterSnapshot, node: PlannedNode, pod: Pod, price: int
) -> Iterator[ProvisionerOffering]:
    """Yield what the owner of a node could launch for less, with the cheaper offerings alone."""
    owner = next(owner for owner in snapshot.provisioners if owner.name == node.provisioner)
    for offer in usual_offers(snapshot, owner, pod):
        cheaper = tuple(found for found in offer.offerings if found.price_micros_per_hour < price)
        if cheaper:
            yield replace(offer, offerings=cheaper)


def _reason(offer: ProvisionerOffering, node: PlannedNode, pods: tuple[Pod, ...]) -> str:
    if short := node.requests.exceeding(offer.available):
        return f"too little {', '.join(short)} for {counted(len(pods), 'pod')}"
    for offering in offer.offerings:
        labels = {**offer.labels, **place_labels(offering)}
        if all(labels_accepted(pod.scheduling, labels) for pod in pods):
            return ""
    return "labels or zones that not all its pods accept"


def _alone(
    snapshot: ClusterSnapshot, pods: tuple[Pod, ...], price: int, settings: PackingSettings
) -> str:
    """Return what pods cost on new nodes below a price, without other pods to place."""
    types = tuple(
        replace(
            found,
            offerings=tuple(one for one in found.offerings if one.price_micros_per_hour < price),
        )
        for found in snapshot.instance_types
    )
    closed = tuple(replace(node, unschedulable=True) for node in snapshot.nodes)
    plan = decide(
        replace(snapshot, pending=pods, instance_types=types, nodes=closed, slots=(), launching=()),
        settings,
    )
    begin = f"on cheaper types alone its {counted(len(pods), 'pod')}"
    if plan.unschedulable:
        return f"{begin} would not all have a place: {len(plan.unschedulable)} of them fit none"
    cost = plan.cost_micros_per_hour
    rules = dict.fromkeys(rule for pod in pods for rule in rules_in_words(pod.scheduling))
    least = f"{begin} would be on {counted(len(plan.nodes), 'node')} for {dollars(cost)}/h"
    if cost >= price:
        return f"{least}, {f'{dollars(cost - price)}/h more' if cost > price else 'as now'}"
    return (
        f"{least}, {dollars(price - cost)}/h less: the plan keeps room for pods to come, "
        f"or rules forbid it{': ' if rules else ''}{', '.join(rules)}"
    )
