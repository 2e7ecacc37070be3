"""The nodes of a cluster with their prices and pods."""

from collections.abc import Iterable, Mapping
from statistics import median_low
from typing import Final

from msgspec import Struct

from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType, InstanceType
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.resources import Resources
from shared.model.snapshot import ClusterSnapshot
from shared.provisioning.savings.pools import Pool, PoolKind, capacity_type_of, pool_of

LINUX: Final = "linux"


class FilledNode(Struct, frozen=True, kw_only=True):
    """A node that runs, or one that a plan would launch.

    Attributes:
        name: Empty for a node that is planned.
        os: As its label `kubernetes.io/os` says.
        price_micros_per_hour: None when it is not known.
        pods: Without those of DaemonSets.
        daemons: Total requests of DaemonSet pods and static pods.
    """

    name: str = ""
    pool: Pool
    instance_type: str
    zone: str
    capacity_type: CapacityType
    os: str = LINUX
    price_micros_per_hour: int | None
    allocatable: Resources
    pods: tuple[Pod, ...]
    daemons: Resources

    @property
    def used(self) -> Resources:
        """Total requests of all its pods."""
        return Resources.total((self.daemons, *(pod.scheduling.requests for pod in self.pods)))


class CatalogPrices:
    """Prices by type, zone and capacity type, in micro-dollars per hour.

    A node in a zone that the catalogue lacks has the median price of its type in the others.
    """

    def __init__(self, instance_types: Iterable[InstanceType]) -> None:
        self._offerings = {found.name: found.offerings for found in instance_types}

    def of(self, instance_type: str, zone: str, how: CapacityType) -> int | None:
        """Return a price, None when the catalogue has no such type."""
        prices = {
            offering.zone: offering.price_micros_per_hour
            for offering in self._offerings.get(instance_type, ())
            if offering.capacity_type == how
        }
        return prices.get(zone, median_low(prices.values()) if prices else None)

    def of_node(self, node: Node) -> int | None:
        """Return the price of a node, None when not known; a catalogue has only Linux prices."""
        labels = node.labels
        if labels.get(keys.OS, LINUX) != LINUX:
            return None
        place = (labels.get(keys.INSTANCE_TYPE, ""), labels.get(keys.ZONE, ""))
        return self.of(*place, capacity_type_of(node))


def inventory(snapshot: ClusterSnapshot) -> tuple[FilledNode, ...]:
    """Return the nodes of a snapshot, sorted by pool and name.

    Fargate and Windows nodes have no price here.
    """
    by_node: dict[str, list[Pod]] = {}
    for pod in snapshot.bound:
        by_node.setdefault(pod.node_name, []).append(pod)
    prices = CatalogPrices(snapshot.instance_types)
    found = [filled_node(node, by_node.get(node.name, ()), prices) for node in snapshot.nodes]
    return tuple(sorted(found, key=lambda node: (node.pool, node.name)))


def filled_node(node: Node, pods: Iterable[Pod], prices: CatalogPrices) -> FilledNode:
    """Return a node with its pods and its price."""
    on_it = tuple(pods)
    pool, how = pool_of(node), capacity_type_of(node)
    instance_type, zone = node.labels.get(keys.INSTANCE_TYPE, ""), node.labels.get(keys.ZONE, "")
    return FilledNode(
        name=node.name,
        pool=pool,
        instance_type=instance_type,
        zone=zone,
        capacity_type=how,
        os=node.labels.get(keys.OS, LINUX),
        price_micros_per_hour=None if pool.kind == PoolKind.FARGATE else prices.of_node(node),
        allocatable=node.allocatable,
        pods=tuple(pod for pod in on_it if pod.counts_for_emptiness),
        daemons=Resources.total(
            pod.scheduling.requests for pod in on_it if not pod.counts_for_emptiness
        ),
    )


def cost(nodes: Iterable[FilledNode]) -> int:
    """Return what the nodes with a known price cost together, in micro-dollars per hour."""
    return sum(node.price_micros_per_hour or 0 for node in nodes)


def by_pool(nodes: Iterable[FilledNode]) -> Mapping[Pool, tuple[FilledNode, ...]]:
    """Return the nodes of each pool, in the order of the pools."""
    found: dict[Pool, list[FilledNode]] = {}
    for node in nodes:
        found.setdefault(node.pool, []).append(node)
    return {pool: tuple(found[pool]) for pool in sorted(found)}
