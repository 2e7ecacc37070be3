"""Which pools are compared, and what each may launch."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from functions.cli.input_error import InputError
from functions.cli.report.owners import owners_of, site_of
from functions.cli.shadow.fleet import Observation
from shared.disruption.simulate import as_pending
from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.nearest import nearest
from shared.model.policy import Trigger
from shared.model.provisioner import Provisioner
from shared.model.snapshot import ClusterSnapshot, ProvisionerSite
from shared.model.values import replace
from shared.planning.rules.provided_daemonsets import provided_daemonsets
from shared.provisioning.savings.inventory import CatalogPrices
from shared.provisioning.savings.pools import Pool, PoolKind, capacity_type_of, pool_of
from shared.snapshot.standing_daemons import with_standing

# Pools whose nodes an autoscaler chooses; where there is one, node groups are left as they are.
_CHOSEN: Final = frozenset({PoolKind.NODE_POOL, PoolKind.PROVISIONER, PoolKind.AUTO_MODE})
_NEVER: Final = dict.fromkeys(Trigger, False)


class ComparedPools(Struct, frozen=True, kw_only=True):
    """The pools whose nodes Dovetail would choose.

    Attributes:
        owners: What each of them may launch; no two owners have the same name.
        sites: Where each owner's nodes can be launched.
        prices: Those of the instance types.
        notes: Which pools are left out, and why.
    """

    owners: Mapping[Pool, Provisioner]
    sites: tuple[ProvisionerSite, ...]
    instance_types: tuple[InstanceType, ...]
    prices: CatalogPrices
    notes: tuple[str, ...]

    def price_of(self, node: Node) -> int | None:
        """Return the price of a node that is compared, None for a node that is not."""
        return self.prices.of_node(node) if pool_of(node) in self.owners else None

    def pool_named(self, owner: str) -> Pool:
        """Return the pool of an owner."""
        return next(pool for pool, found in self.owners.items() if found.name == owner)

    def scene(
        self,
        name: str,
        observed: Observation,
        nodes: Iterable[Node],
        bound: Iterable[Pod],
        waiting: Iterable[Pod] = (),
    ) -> ClusterSnapshot:
        """Return a snapshot with the owners of the pools.

        Args:
            name: Plans keep what they know of the nodes of a cluster from one to the next.
            observed: The real cluster: its pods show what those of DaemonSets take on a node.
            waiting: Pods that wait for a node, as they are.
        """
        owners = tuple(sorted(self.owners.values(), key=lambda owner: owner.name))
        usable = [found for found in observed.daemonsets if not found.problem]
        provided = provided_daemonsets(
            with_standing(usable, observed.pods), owners, self.instance_types
        )
        return ClusterSnapshot(
            cluster=name,
            taken_at=observed.at,
            pending=tuple(map(as_pending, waiting)),
            bound=tuple(sorted(bound, key=lambda pod: (pod.key, pod.uid))),
            nodes=tuple(sorted(nodes, key=lambda node: node.name)),
            provisioners=owners,
            sites=self.sites,
            daemonsets=provided.daemonsets,
            slots=(),
            intents=(),
            namespaces=observed.namespaces,
            instance_types=self.instance_types,
        )


def shown_key(node: Node) -> str:
    """Return what a node shows of its pool: its type, zone, capacity type and architecture."""
    labels = (node.labels.get(key, "") for key in (keys.INSTANCE_TYPE, keys.ZONE, keys.ARCH))
    return "|".join((str(pool_of(node)), *labels, capacity_type_of(node).value))


def refuse_unknown_pools(
    names: Iterable[str], observed: Observation, shown: Iterable[Node]
) -> None:
    """Refuse a name that no pool has; a pool that is declared needs no node.

    Args:
        shown: Nodes that there were before.

    Raises:
        InputError: If a name is that of no pool.
    """
    pools = sorted(_by_pool(observed, (*shown, *observed.nodes)))
    known = {pool.name for pool in pools if pool.name}
    for name in names:
        if name not in known:
            near = nearest(name, known)
            meant = f"write {near}; " if near else ""
            there = ", ".join(str(pool) for pool in pools if pool.name) or "none"
            raise InputError(
                f"--pool {name}: {meant}the cluster has no such pool; there are: {there} (node "
                "groups show once they have a node)"
            )


def compared_pools(
    observed: Observation,
    shown: Collection[Node],
    instance_types: Sequence[InstanceType],
    named: Collection[str] = (),
) -> ComparedPools:
    """Return the pools that are compared: those that are named, else all that Karpenter chooses.

    Where Karpenter or Auto Mode has no pool, all node groups are compared. Fargate never is.

    Args:
        shown: Nodes that there were, which show what their pools may launch.
        named: Names of pools; none for the default.
    """
    by_pool = _by_pool(observed, shown)
    if named:
        wanted = [pool for pool in by_pool if pool.name in named]
    else:
        wanted = [pool for pool in by_pool if pool.kind in _CHOSEN] or list(by_pool)
    notes = [
        f"--pool {name}: nothing of it is comparable now: there are {', '.join(map(str, by_pool))}"
        for name in named
        if all(pool.name != name for pool in wanted)
    ]
    scene = _scene(observed, shown, instance_types)
    owners: dict[str, tuple[Pool, Provisioner]] = {}
    for pool, owner in owners_of(scene, {pool: by_pool[pool] for pool in sorted(wanted)}).items():
        first, _ = owners.setdefault(owner.name, (pool, _unbraked(owner)))
        if first != pool:
            notes.append(f"{pool} is not compared: {first} has the same name")
    left = [pool for pool in sorted(by_pool) if pool not in wanted]
    if left:
        why = "--pool does not name them" if named else "Karpenter or EKS Auto Mode has pools"
        notes.append(f"not compared, as {why}: {', '.join(map(str, left))}")
    return ComparedPools(
        owners=dict(owners.values()),
        sites=tuple(site_of(pool, owner, by_pool[pool], scene) for pool, owner in owners.values()),
        instance_types=tuple(instance_types),
        prices=CatalogPrices(instance_types),
        notes=tuple(notes),
    )


def _by_pool(observed: Observation, nodes: Iterable[Node]) -> dict[Pool, list[Node]]:
    """Return the nodes of each pool that can be compared, those that are declared first."""
    by_pool: dict[Pool, list[Node]] = {
        Pool(PoolKind(owner.kind), owner.name): [] for owner in observed.provisioners
    }
    for node in sorted(nodes, key=shown_key):
        by_pool.setdefault(pool_of(node), []).append(node)
    by_pool.pop(Pool(PoolKind.FARGATE), None)
    return by_pool


def _scene(
    observed: Observation, shown: Collection[Node], instance_types: Sequence[InstanceType]
) -> ClusterSnapshot:
    """Return what says which pools are declared, and in which zones there are nodes."""
    return ClusterSnapshot(
        cluster="",
        taken_at=observed.at,
        pending=(),
        bound=(),
        nodes=tuple(shown),
        provisioners=observed.provisioners,
        sites=(),
        daemonsets=(),
        slots=(),
        intents=(),
        instance_types=tuple(instance_types),
    )


def _unbraked(owner: Provisioner) -> Provisioner:
    """Return an owner as Dovetail would act for it, but for what only EC2 or new images cause."""
    return replace(owner, paused=False, shadow=False, triggers=_NEVER)
