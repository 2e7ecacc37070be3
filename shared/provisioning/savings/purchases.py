"""Compares each purchase of another autoscaler with what Dovetail would have bought instead."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from shared.disruption.simulate import as_pending
from shared.model import labels as keys
from shared.model.dollars_and_counts import counted, counted_kinds, dollars
from shared.model.ec2.launches import PlannedNode
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from shared.provisioning.savings.inventory import CatalogPrices
from shared.provisioning.savings.pools import capacity_type_of

# Nodes of one purchase join within this time of each other: boot times differ by seconds.
_TOGETHER: Final = timedelta(seconds=30)
# Within this time after a node is Ready, kube-scheduler binds the pods that it was bought for.
_FILLED: Final = timedelta(seconds=15)
# The pods of older nodes are no longer those that they were bought for.
_RECENT: Final = timedelta(hours=1)
_KARPENTER: Final = "Karpenter"


class PurchaseComparison(Struct, frozen=True, kw_only=True):
    """One purchase of another autoscaler, and Dovetail's for the same pods.

    Attributes:
        bought: The nodes that the other autoscaler bought.
        bought_micros_per_hour: Their price; None if that of a node is not known.
        pods: Number of pods that run on them, without those of DaemonSets.
        planned: The nodes that Dovetail would have bought.
        unplaced: (pod, reason) for each of these pods that Dovetail has no node for.
        buyer: Name of the other autoscaler.
    """

    bought: tuple[Node, ...]
    bought_micros_per_hour: int | None
    pods: int
    planned: tuple[PlannedNode, ...]
    unplaced: tuple[tuple[str, str], ...] = ()
    buyer: str = _KARPENTER

    @property
    def planned_micros_per_hour(self) -> int:
        """What the nodes that Dovetail would have bought cost."""
        return sum(node.price_micros_per_hour for node in self.planned)

    @property
    def bought_kinds(self) -> str:
        """The types and capacity types of the nodes that were bought, for people."""
        return counted_kinds(map(_node_text, self.bought))

    @property
    def planned_kinds(self) -> str:
        """The same of those that Dovetail would have bought; empty for none."""
        return counted_kinds(map(_planned_node_text, self.planned))

    @property
    def is_comparable(self) -> bool:
        """Whether both sides have the same pods at known prices, so that they can be summed up."""
        return self.bought_micros_per_hour is not None and not self.unplaced

    @property
    def text(self) -> str:
        """Both sides in dollars an hour, for people."""
        theirs, ours = self.bought_micros_per_hour, self.planned_micros_per_hour
        price = "an unknown price" if theirs is None else f"{dollars(theirs)}/h"
        text = (
            f"{self.buyer} bought {counted(len(self.bought), 'node')} for "
            f"{counted(self.pods, 'pod')} at {price} ({self.bought_kinds}); "
            "Dovetail would have bought "
        )
        text += (
            f"{counted(len(self.planned), 'node')} at {dollars(ours)}/h ({self.planned_kinds})"
            if self.planned
            else "none"
        )
        if self.unplaced:
            key, why = self.unplaced[0]
            return f"{text}, and has no node for {counted(len(self.unplaced), 'pod')}: {key}: {why}"
        return text if theirs is None else text + difference(theirs, ours)


class Tally(Struct, frozen=True, kw_only=True):
    """Purchases that were compared, summed up.

    Attributes:
        since: Time of the first comparison.
        purchases: Number of purchases in the sums.
        pods: Number of pods that they were for.
        bought_micros_per_hour: What the other autoscaler bought, at the prices of each purchase.
        planned_micros_per_hour: What Dovetail would have bought.
        left_out: Number of purchases that are in no sum: a price is not known, or Dovetail has no
            node for one of the pods.
    """

    since: datetime
    purchases: int = 0
    pods: int = 0
    bought_micros_per_hour: int = 0
    planned_micros_per_hour: int = 0
    left_out: int = 0

    def plus(self, found: PurchaseComparison) -> "Tally":
        """Return the tally with one more purchase."""
        if not found.is_comparable:
            return replace(self, left_out=self.left_out + 1)
        return replace(
            self,
            purchases=self.purchases + 1,
            pods=self.pods + found.pods,
            bought_micros_per_hour=self.bought_micros_per_hour
            + (found.bought_micros_per_hour or 0),
            planned_micros_per_hour=self.planned_micros_per_hour + found.planned_micros_per_hour,
        )

    @property
    def text(self) -> str:
        """The sums in dollars an hour, for people."""
        theirs, ours = self.bought_micros_per_hour, self.planned_micros_per_hour
        text = (
            f"in shadow mode since {self.since:%Y-%m-%d %H:%M} UTC: Karpenter spent "
            f"{dollars(theirs)}/h in {counted(self.purchases, 'purchase')} for "
            f"{counted(self.pods, 'pod')}; Dovetail would have spent {dollars(ours)}/h"
            f"{difference(theirs, ours)}"
        )
        left = f"; {self.left_out} left out: see Events ShadowPurchase" if self.left_out else ""
        return text + left


def difference(theirs: int, ours: int) -> str:
    """Return what Dovetail's side costs less or more, as the end of a sentence."""
    if theirs == ours:
        return ""
    return f", {dollars(abs(theirs - ours))}/h {'less' if ours < theirs else 'more'}"


def purchases(
    nodes: Iterable[Node], bound: Iterable[Pod], reported: Collection[str], now: datetime
) -> tuple[tuple[Node, ...], ...]:
    """Return the purchases of the last hour that can be compared now, oldest first.

    A purchase is the nodes that join within 30 s. It can be compared 15 s after the last of them
    became Ready, once a pod runs on one of them.

    Args:
        nodes: Those that the other autoscaler bought.
        bound: Pods on nodes.
        reported: Uids of nodes whose purchase was compared before.
    """
    found = [group for group in _together(nodes, reported, now) if _is_ready(group, now)]
    used = {pod.node_name for pod in bound if counts_for_purchase(pod)} if found else set()
    return tuple(group for group in found if any(node.name in used for node in group))


def compare(
    snapshot: ClusterSnapshot,
    bought: Sequence[Node],
    settings: PackingSettings,
    buyer: str = _KARPENTER,
) -> PurchaseComparison:
    """Return a purchase beside what Dovetail would have bought for the pods that run on it.

    The cluster is taken as it is, without these nodes and those that joined later: pods may still
    use free capacity on the earlier nodes. Pending pods are left out.

    Args:
        snapshot: Includes what volumes would require if the pods on these nodes moved.
    """
    names = {node.name for node in bought}
    pods = [pod for pod in snapshot.bound if pod.node_name in names and counts_for_purchase(pod)]
    earlier = _before(snapshot, bought, pods)
    plan = decide(earlier, settings)
    keys_of = {pod.uid: pod.key for pod in pods}
    return PurchaseComparison(
        bought=tuple(bought),
        bought_micros_per_hour=_price(bought, snapshot),
        pods=len(pods),
        planned=plan.nodes,
        unplaced=tuple(
            (keys_of[left.pod.uid], "; ".join(left.reasons)) for left in plan.unschedulable
        ),
        buyer=buyer,
    )


def pool_name(node: Node) -> str:
    """Return the NodePool or Provisioner that Karpenter bought a node for, empty for none."""
    if keys.SLOT in node.annotations:
        return ""
    labels = node.labels
    return labels.get(keys.NODE_POOL) or labels.get(keys.PROVISIONER_NAME, "")


def counts_for_purchase(pod: Pod) -> bool:
    """Return whether a node may have been bought for a pod that runs on it."""
    return pod.counts_for_emptiness and not pod.is_terminating


def _together(
    nodes: Iterable[Node], reported: Collection[str], now: datetime
) -> Iterator[tuple[Node, ...]]:
    fresh = sorted(
        (node.created_at, node.name, node)
        for node in nodes
        if node.created_at is not None
        and now - node.created_at < _RECENT
        and node.uid not in reported
    )
    while fresh:
        first = fresh[0][0]
        found = tuple(node for at, _, node in fresh if at - first <= _TOGETHER)
        fresh = fresh[len(found) :]
        if now - first > _TOGETHER:
            yield found


def _is_ready(nodes: Iterable[Node], now: datetime) -> bool:
    return all(
        node.ready is True and now - (node.ready_changed_at or now) >= _FILLED for node in nodes
    )


def _before(
    snapshot: ClusterSnapshot, bought: Sequence[Node], pods: Sequence[Pod]
) -> ClusterSnapshot:
    """Return the cluster before a purchase, with only the pods of the purchase pending."""
    at = min((node.created_at for node in bought if node.created_at), default=snapshot.taken_at)
    names = {node.name for node in bought}
    after = {
        node.name
        for node in snapshot.nodes
        if node.name in names or (node.created_at is not None and node.created_at > at)
    }
    return replace(
        snapshot,
        pending=tuple(as_pending(pod) for pod in pods),
        bound=tuple(pod for pod in snapshot.bound if pod.node_name not in after),
        nodes=tuple(node for node in snapshot.nodes if node.name not in after),
        promised=frozenset(),
    )


def _price(nodes: Iterable[Node], snapshot: ClusterSnapshot) -> int | None:
    prices = CatalogPrices(snapshot.instance_types)
    found = [prices.of_node(node) for node in nodes]
    known = [price for price in found if price is not None]
    return sum(known) if len(known) == len(found) else None


def _node_text(node: Node) -> str:
    named = node.labels.get(keys.INSTANCE_TYPE, "unknown type")
    return f"{named} {capacity_type_of(node).value}"


def _planned_node_text(node: PlannedNode) -> str:
    offering = node.options[0].offering
    return f"{offering.instance_type} {offering.capacity_type.value}"
