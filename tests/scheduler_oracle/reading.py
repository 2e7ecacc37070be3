"""Reads a case's raw documents the way Dovetail does: into one snapshot."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from shared.manifests.custom_resources.provisioners import decode_provisioners
from shared.manifests.daemonsets import decode_daemonset
from shared.manifests.nodes import decode_node
from shared.manifests.pods import PodDecoder
from shared.model.ec2.instance_types import CapacityType, OfferingKey
from shared.model.ec2.launches import LaunchIntent, LaunchOption, PlannedNode, PodRef, Slot
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.resources import Resources
from shared.model.snapshot import ClusterSnapshot, ProvisionerSite
from shared.snapshot.volumes import with_volumes
from tests.scheduler_oracle.clusters import keys
from tests.scheduler_oracle.clusters.catalog import instance_types
from tests.scheduler_oracle.clusters.daemonsets import daemon_pod
from tests.scheduler_oracle.clusters.disks import RawStorage
from tests.scheduler_oracle.clusters.nodes import as_seen, standing
from tests.scheduler_oracle.clusters.seeded_random import Json

NOW: Final = datetime(2026, 1, 1, 2, tzinfo=UTC)
CLUSTER: Final = "opinion"


def snapshot_of(case: Json) -> ClusterSnapshot:
    """Return what Dovetail would gather of the case."""
    provisioners, invalid = decode_provisioners(case["provisioners"])
    assert not invalid, f"the generator made an invalid Provisioner: {invalid}"
    pods = _pods(case)
    by_uid = {pod.uid: pod for pod in pods}
    slots = [slot for slot in case["slots"] if slot["seen"] != "ordered"]
    ordered = [slot for slot in case["slots"] if slot["seen"] == "ordered"]
    snapshot = ClusterSnapshot(
        cluster=CLUSTER,
        taken_at=NOW,
        pending=tuple(pod for pod in pods if not pod.node_name),
        bound=tuple(pod for pod in pods if pod.node_name),
        nodes=_nodes(case, slots),
        provisioners=provisioners,
        sites=tuple(
            ProvisionerSite(
                provisioner=provisioner.name, zones=tuple(case["sites"][provisioner.name])
            )
            for provisioner in provisioners
        ),
        daemonsets=tuple(decode_daemonset(daemon_set) for daemon_set in case["daemonsets"]),
        slots=tuple(_slot(case, slot, by_uid) for slot in slots),
        intents=tuple(_intent(entry) for entry in ordered),
        promised=frozenset(uid for entry in ordered for uid in entry["pods"]),
        launching=tuple(_planned(case, entry, by_uid) for entry in ordered),
        namespaces=case["namespaces"],
        instance_types=instance_types(case["types"], case.get("volume_limits")),
        unavailable=frozenset(offering(*entry) for entry in case["unavailable"]),
        seed=case["seed"] % 2**32,
    )
    return with_volumes(RawStorage(case), snapshot)


def offering(name: str, zone: str, capacity_type: str) -> OfferingKey:
    return OfferingKey(instance_type=name, zone=zone, capacity_type=CapacityType(capacity_type))


def _pods(case: Json) -> list[Pod]:
    decoder = PodDecoder()
    found = [decoder.decode(pod) for pod in case["pods"]]
    found = [pod for pod in found if not pod.is_terminal]
    return sorted(found, key=lambda entry: (entry.key, entry.uid))


def _nodes(case: Json, slots: Iterable[Json]) -> tuple[Node, ...]:
    owners = {provisioner["metadata"]["name"]: provisioner for provisioner in case["provisioners"]}
    raw = standing(case)
    for slot in slots:
        seen = as_seen(slot, owners[owner_of(slot)])
        if seen is not None:
            raw.append(seen)
    return tuple(sorted((decode_node(entry) for entry in raw), key=lambda node: node.name))


def owner_of(flying: Json) -> str:
    """Return the name of the provisioner whose node a slot is."""
    return str(flying["node"]["metadata"]["labels"][keys.PROVISIONER])


def _slot(case: Json, flying: Json, pods: dict[str, Pod]) -> Slot:
    option = _option(flying, flying["node"]["metadata"]["labels"])
    shows = flying["seen"] != "no"
    return Slot(
        cluster=CLUSTER,
        plan_id="plan-0",
        group=0,
        number=flying["number"],
        provisioner=owner_of(flying),
        instance_id=f"i-{flying['node']['metadata']['name']}",
        offering=option.offering,
        price_micros_per_hour=option.price_micros_per_hour,
        capacity=option.capacity,
        allocatable=option.allocatable,
        daemon_requests=_daemons(case, flying),
        labels=_own_labels(flying, place=True),
        node_name=flying["node"]["metadata"]["name"] if shows else "",
        pods=_refs(flying, pods),
        launched_at=NOW,
    )


def _intent(flying: Json) -> LaunchIntent:
    """Return the launch of a node that is ordered only; each is a group of its own."""
    return LaunchIntent(
        cluster=CLUSTER,
        plan_id="plan-0",
        group=flying["number"],
        attempt=0,
        provisioner=owner_of(flying),
        count=1,
        body_key="body",
        body_hash="0" * 64,
        reserved=Resources.parse(flying["node"]["status"]["capacity"]),
        created_at=NOW,
    )


def _planned(case: Json, flying: Json, pods: dict[str, Pod]) -> PlannedNode:
    labels = flying["node"]["metadata"]["labels"]
    assert any(option.items() <= labels.items() for option in flying["options"]), "never that node"
    return PlannedNode(
        provisioner=owner_of(flying),
        labels=_own_labels(flying, place=False),
        options=tuple(_option(flying, place) for place in flying["options"]),
        pods=_refs(flying, pods),
        requests=Resources.total(
            pods[uid].scheduling.requests for uid in flying["pods"] if uid in pods
        ),
        daemon_requests=_daemons(case, flying),
    )


def _own_labels(flying: Json, *, place: bool) -> dict[str, str]:
    """Return the labels a slot is written down with: the provisioner's, and where it stands."""
    kept = {keys.PROVISIONER, keys.RACK, keys.TEAM, keys.LEVEL}
    if place:
        kept |= {keys.ZONE, keys.CAPACITY_TYPE, keys.INSTANCE_TYPE}
    return {k: v for k, v in flying["node"]["metadata"]["labels"].items() if k in kept}


def _option(flying: Json, labels: Json) -> LaunchOption:
    status = flying["node"]["status"]
    return LaunchOption(
        offering=offering(
            labels[keys.INSTANCE_TYPE], labels[keys.ZONE], labels[keys.CAPACITY_TYPE]
        ),
        price_micros_per_hour=50_000,
        capacity=Resources.parse(status["capacity"]),
        allocatable=Resources.parse(status["allocatable"]),
    )


def _daemons(case: Json, flying: Json) -> Resources:
    decoder = PodDecoder()
    made = [daemon_pod(daemon_set, flying["node"]) for daemon_set in case["daemonsets"]]
    return Resources.total(decoder.decode(entry).scheduling.requests for entry in made if entry)


def _refs(flying: Json, pods: dict[str, Pod]) -> tuple[PodRef, ...]:
    """Return the pods promised to a slot, also those that are gone since."""
    return tuple(
        PodRef(namespace=pods[uid].namespace, name=pods[uid].name, uid=uid)
        for uid in sorted(flying["pods"])
        if uid in pods
    )
