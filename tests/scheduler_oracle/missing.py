"""Whether a pod that the plan gave up could have been placed after all, by trying everything."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from infra.local.cluster_simulator.rules.amounts import amounts, pod_requests
from infra.local.cluster_simulator.rules.predicates import allocatable_of, node_reasons
from shared.model.ec2.launches import LaunchOption, PlannedNode
from shared.model.plan import Plan
from shared.model.provisioner import Provisioner
from shared.model.resources import Resources
from shared.model.snapshot import ClusterSnapshot
from shared.planning.rules.provisioner_offerings import as_configured
from tests.scheduler_oracle.clusters import keys
from tests.scheduler_oracle.clusters.daemonsets import daemon_pod
from tests.scheduler_oracle.clusters.seeded_random import Json
from tests.scheduler_oracle.judging import used_of
from tests.scheduler_oracle.reading import offering
from tests.scheduler_oracle.worlds import World, planned_node

_CUSTOM: Final = {keys.TEAM: keys.TEAMS, keys.RACK: keys.RACKS, keys.LEVEL: ("1", "2", "3", "9")}


@dataclass(slots=True)
class _Way:
    """One node that could be bought: an offering, with a pick of custom labels."""

    owner: Provisioner
    option: LaunchOption
    labels: dict[str, str]
    arch: str
    kind: str = ""

    def __post_init__(self) -> None:
        way = self.option.offering
        picks = (self.labels.get(key, "-") for key in _CUSTOM)
        # What tells nodes apart once each of them is large enough and wants the pod.
        self.kind = " ".join((self.owner.name, way.zone, way.capacity_type, self.arch, *picks))

    def holds(self, requests: dict[str, int]) -> bool:
        return all(amount <= self.option.allocatable[name] for name, amount in requests.items())


class Trials:
    """Every node that could still be bought beside a plan."""

    def __init__(self, case: Json, snapshot: ClusterSnapshot, plan: Plan) -> None:
        self._case = case
        # What has no instance yet is no room: it may still come to nothing.
        self._ordered = {
            slot["node"]["metadata"]["name"] for slot in case["slots"] if slot["seen"] == "ordered"
        }
        left = {
            owner.name: _left(case, plan, owner)
            for owner in snapshot.provisioners
            if owner.limits is not None
        }
        self._snapshot = snapshot
        self._types = {
            instance_type.name: instance_type for instance_type in snapshot.instance_types
        }
        self._ways = [
            _Way(
                owner, option, labels, self._types[option.offering.instance_type].labels[keys.ARCH]
            )
            for owner in snapshot.provisioners
            if not owner.paused and not owner.deleting
            for option in allowed_options(snapshot, owner, left.get(owner.name, {}))
            for labels in _picks(owner)
        ]
        self._nodes: dict[int, Json | None] = {}

    def place_for(self, pod: Json, world: World) -> str:
        """Return a place that accepts the pod beside the whole plan, empty for none."""
        for name, room in world.rooms.open():
            assert room.node is not None
            if name not in self._ordered and takes_pods(room.node) and not world.reasons(pod, name):
                return name
        tried: set[str] = set()
        requests = pod_requests(pod)
        for number, way in enumerate(self._ways):
            if way.kind in tried or not way.holds(requests):
                continue
            node = self._node(number, way)
            if node is None or node_reasons(pod, node) or self._is_too_small(pod, node):
                continue
            tried.add(way.kind)
            if not world.with_node(node, self._case["daemonsets"]).reasons(pod, "trial"):
                return way.kind
        return ""

    def _node(self, number: int, way: "_Way") -> Json | None:
        """Return the node that would come of it, None when the provisioner does not allow it."""
        if number not in self._nodes:
            planned = PlannedNode(
                provisioner=way.owner.name,
                labels=way.labels,
                options=(way.option,),
                pods=(),
                requests=Resources(),
            )
            node = planned_node("trial", planned, way.option, way.owner, self._types)
            allowed = _is_allowed(way.owner, node["metadata"]["labels"])
            self._nodes[number] = node if allowed else None
        return self._nodes[number]

    def _is_too_small(self, pod: Json, node: Json) -> bool:
        free = amounts(allocatable_of(node))
        daemons = [daemon_pod(daemon_set, node) for daemon_set in self._case["daemonsets"]]
        for daemon in (pod, *(made for made in daemons if made is not None)):
            for name, amount in pod_requests(daemon).items():
                free[name] = free.get(name, 0) - amount
        return any(amount < 0 for amount in free.values())


def _left(case: Json, plan: Plan, owner: Provisioner) -> dict[str, int]:
    """Return what a provisioner's limits leave once the plan's most expensive outcome is bought."""
    used = used_of(case, owner.name)
    bought = [node.largest_capacity for node in plan.nodes if node.provisioner == owner.name]
    limits = owner.limits or Resources()
    return {
        name: amount - used[name] - sum(resources[name] for resources in bought)
        for name, amount in limits.items
    }


def takes_pods(node: Json) -> bool:
    """Return whether Dovetail may count on a node: it stays, and is ready or only planned."""
    conditions = node["status"].get("conditions") or ()
    is_ready = node["metadata"]["name"].startswith("planned") or any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions
    )
    leaving = node["metadata"].get("deletionTimestamp") or node["spec"].get("unschedulable")
    return is_ready and not leaving


def allowed_options(
    snapshot: ClusterSnapshot, owner: Provisioner, left: dict[str, int]
) -> Iterator[LaunchOption]:
    """Yield what a provisioner may buy, of any kind its requirements may still rule out.

    Args:
        snapshot: Of the case.
        owner: The provisioner.
        left: What its limits leave, by resource; absent for no limit.
    """
    zones = {site.provisioner: site.zones for site in snapshot.sites}[owner.name]
    for kind in snapshot.instance_types:
        configured = as_configured(owner, kind)
        if any(configured.capacity[name] > amount for name, amount in left.items()):
            continue
        for other_offering in kind.offerings:
            way = offering(kind.name, other_offering.zone, other_offering.capacity_type.value)
            if other_offering.zone in zones and way not in snapshot.unavailable:
                yield LaunchOption(
                    offering=way,
                    price_micros_per_hour=other_offering.price_micros_per_hour,
                    capacity=configured.capacity,
                    allocatable=configured.allocatable,
                )


def _picks(owner: Provisioner) -> Iterator[dict[str, str]]:
    """Yield the custom labels a node of the provisioner may have."""
    found: list[dict[str, str]] = [{keys.PROVISIONER: owner.name, **owner.labels}]
    for key, values in _CUSTOM.items():
        wanted = owner.requirements.get(key)
        if wanted is None or key in owner.labels:
            continue
        allowed = [value for value in values if wanted.allows(value)]
        picks = [{key: value} for value in allowed]
        if len(allowed) != 1 or wanted.complement:
            picks.append({})
        found = [{**entry, **pick} for entry in found for pick in picks]
    yield from found


def _is_allowed(owner: Provisioner, labels: Json) -> bool:
    return all(
        requirement.allows(labels.get(requirement.key))
        or (requirement.key in _CUSTOM and requirement.key not in labels)
        for requirement in owner.requirements
    )
