"""Holds a plan against the raw documents: everything that is wrong with it."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from infra.local.cluster_simulator.rules.amounts import amounts
from infra.local.cluster_simulator.rules.matching import matches_expression
from shared.model.ec2.launches import LaunchOption
from shared.model.plan import Plan
from shared.model.snapshot import ClusterSnapshot
from tests.scheduler_oracle.clusters import keys
from tests.scheduler_oracle.clusters.provisioners import buys
from tests.scheduler_oracle.clusters.seeded_random import Json
from tests.scheduler_oracle.worlds import World, planned_node, slot_names, world_of

_CUSTOM = (keys.TEAM, keys.RACK, keys.LEVEL)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong: its kind (the same for the same mistake) and what shows it."""

    kind: str
    text: str


def is_provisionable(pod: Json) -> bool:
    """Return whether a waiting pod asks for capacity, read from the raw document."""
    spec, status, meta = pod["spec"], pod["status"], pod["metadata"]
    owners = {
        owner_reference["kind"]
        for owner_reference in meta.get("ownerReferences") or ()
        if owner_reference.get("controller")
    }
    return (
        not spec.get("nodeName")
        and not spec.get("schedulingGates")
        and not status.get("nominatedNodeName")
        and not meta.get("deletionTimestamp")
        and status.get("phase") not in ("Succeeded", "Failed")
        and not owners & {"DaemonSet", "Node"}
        and any(
            condition["type"] == "PodScheduled" and condition.get("reason") == "Unschedulable"
            for condition in status.get("conditions") or ()
        )
    )


def asked_for(case: Json) -> dict[str, Json]:
    """Return the pods that the plan must speak about, by uid."""
    promised = {uid for slot in case["slots"] for uid in slot["pods"]}
    return {
        pod["metadata"]["uid"]: pod
        for pod in case["pods"]
        if is_provisionable(pod) and pod["metadata"]["uid"] not in promised
    }


def check_coverage(case: Json, plan: Plan) -> Iterator[Finding]:
    """Each pod is placed exactly once, or has a reason; no other pod is mentioned."""
    asked = asked_for(case)
    placed = [ref.uid for node in plan.nodes for ref in node.pods]
    placed += [ref.uid for place in plan.placements for ref in place.pods]
    told = Counter(placed)
    told.update(pod_left.pod.uid for pod_left in plan.unschedulable)
    for uid in sorted(asked.keys() | told.keys()):
        if told[uid] != (uid in asked):
            yield Finding("coverage", f"{uid} is mentioned {told[uid]} times")
    for pod_left in plan.unschedulable:
        if not pod_left.reasons or not all(pod_left.reasons):
            yield Finding("no reason", f"{pod_left.pod.key} is refused without a reason")
    if plan.order and sorted(ref.uid for ref in plan.order) != sorted(placed):
        yield Finding("order", "the order is not of exactly the placed pods")


def check_limits(case: Json, plan: Plan, snapshot: ClusterSnapshot) -> Iterator[Finding]:
    """The most expensive outcome of every launch stays within the limits."""
    for owner in snapshot.provisioners:
        raw = next(p for p in case["provisioners"] if p["metadata"]["name"] == owner.name)
        limits = amounts((raw["spec"].get("limits") or {}).get("resources"))
        bought = [node for node in plan.nodes if node.provisioner == owner.name]
        if not limits or not bought:
            continue
        used = used_of(case, owner.name)
        for name, limit in limits.items():
            most = sum(
                max(option.capacity[name] for option in (*node.options, *node.fallback))
                for node in bought
            )
            if used.get(name, 0) + most > limit and most:
                text = f"{owner.name}: {name} {used.get(name, 0)} + {most} > {limit}"
                yield Finding("limit", text)


def used_of(case: Json, owner: str) -> Counter[str]:
    """Return the capacity of a provisioner's machines: standing, in flight and ordered."""
    used: Counter[str] = Counter()
    for node in (*case["nodes"], *(slot["node"] for slot in case["slots"])):
        if node["metadata"]["labels"].get(keys.PROVISIONER) == owner:
            used.update(amounts(node["status"]["capacity"]))
    return used


def check_options(case: Json, plan: Plan, snapshot: ClusterSnapshot) -> Iterator[Finding]:
    """Every option is sold, at its price, where the provisioner has subnets, and allowed by it."""
    sold = {
        (kind.name, offering.zone, offering.capacity_type): offering.price_micros_per_hour
        for kind in snapshot.instance_types
        for offering in kind.offerings
    }
    raws = {provisioner["metadata"]["name"]: provisioner for provisioner in case["provisioners"]}
    for number, node in enumerate(plan.nodes):
        if not buys(raws[node.provisioner]):
            yield Finding("closed", f"node {number}: {node.provisioner} is paused or going")
        for option in (*node.options, *node.fallback):
            way = option.offering
            price = sold.get((way.instance_type, way.zone, way.capacity_type))
            if way in snapshot.unavailable or price != option.price_micros_per_hour:
                yield Finding("offering", f"node {number}: {way} is not sold at that price")
            if way.zone not in case["sites"][node.provisioner]:
                yield Finding("subnet", f"node {number}: no subnet in {way.zone}")
    yield from _check_requirements(case, plan, snapshot)


def _check_requirements(case: Json, plan: Plan, snapshot: ClusterSnapshot) -> Iterator[Finding]:
    raws = {provisioner["metadata"]["name"]: provisioner for provisioner in case["provisioners"]}
    for number, node in enumerate(plan.nodes):
        for option in (*node.options, *node.fallback):
            made = made_node(f"planned{number}", snapshot, plan, number, option)
            labels = made["metadata"]["labels"]
            for requirement in raws[node.provisioner]["spec"]["requirements"]:
                if requirement["key"] in _CUSTOM and requirement["key"] not in labels:
                    continue
                if not matches_expression(requirement, labels):
                    text = f"node {number}: {option.offering} breaks {requirement}"
                    yield Finding("requirement", text)


def made_node(
    name: str, snapshot: ClusterSnapshot, plan: Plan, number: int, option: LaunchOption
) -> Json:
    """Return the Node that an option of the plan's node becomes."""
    node = plan.nodes[number]
    owner = next(
        provisioner for provisioner in snapshot.provisioners if provisioner.name == node.provisioner
    )
    types = {instance_type.name: instance_type for instance_type in snapshot.instance_types}
    return planned_node(name, node, option, owner, types)


def outcomes(plan: Plan, seed: int, samples: int) -> list[list[LaunchOption]]:
    """Return which option each node becomes: the cheapest, the last, and some at random."""
    rng = random.Random(seed)
    ways = [(*node.options, *node.fallback) for node in plan.nodes]
    found = [[node.options[0] for node in plan.nodes], [way[-1] for way in ways]]
    found += [[rng.choice(way) for way in ways] for _ in range(samples)]
    distinct = {tuple(launch_option.offering for launch_option in each): each for each in found}
    return list(distinct.values())


def build(
    case: Json, plan: Plan, snapshot: ClusterSnapshot, chosen: Sequence[LaunchOption]
) -> World:
    """Return the world in which each planned node became the chosen option."""
    made = [
        made_node(f"planned{number}", snapshot, plan, number, option)
        for number, option in enumerate(chosen)
    ]
    return world_of(case, made)


def bind_all(case: Json, plan: Plan, world: World) -> list[Finding]:
    """Bind the plan's pods one by one; return what the scheduler says against it."""
    places = place_of(case, plan)
    pods = {pod["metadata"]["uid"]: pod for pod in case["pods"]}
    findings = []
    if plan.order:
        for ref in plan.order:
            reasons = world.reasons(pods[ref.uid], places[ref.uid])
            findings += [_refused(ref.uid, places[ref.uid], reason) for reason in reasons]
            world.bind(pods[ref.uid], places[ref.uid])
        return findings
    waiting = sorted(places)
    while waiting:
        left = []
        for uid in waiting:
            if world.reasons(pods[uid], places[uid]):
                left.append(uid)
            else:
                world.bind(pods[uid], places[uid])
        if len(left) == len(waiting):
            for uid in left:
                reasons = world.reasons(pods[uid], places[uid])
                findings += [_refused(uid, places[uid], reason) for reason in reasons]
                world.bind(pods[uid], places[uid])
            break
        waiting = left
    return findings


def _refused(uid: str, place: str, reason: str) -> Finding:
    kind = "planned" if place.startswith("planned") else "room"
    return Finding(f"{kind}: {reason}", f"{uid} on {place}: {reason}")


def place_of(case: Json, plan: Plan) -> dict[str, str]:
    """Return the node of every placed pod, by uid."""
    named = slot_names(case)
    found = {}
    for place in plan.placements:
        for ref in place.pods:
            found[ref.uid] = named.get(place.slot or place.node, place.node)
    for number, node in enumerate(plan.nodes):
        for ref in node.pods:
            found[ref.uid] = f"planned{number}"
    return found
