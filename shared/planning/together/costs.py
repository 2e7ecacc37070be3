"""What it costs to have a count vector in a domain: on its nodes with room, and on new ones."""

from collections.abc import Mapping, Sequence
from typing import Final

from shared.model import labels as keys
from shared.model.resources import Resources
from shared.planning.offerings.offering_table import Domain
from shared.planning.offerings.target_node import TargetNode
from shared.planning.placement.buying import Purchase, buy
from shared.planning.state import PlanState
from shared.planning.together.batch import Batch, Floors
from shared.scheduling.compatibility import conflict
from shared.scheduling.topology.counts import Place

# A host that does not stand.
_NEW: Final = "\x00"
ENDLESS: Final = 1 << 60


class Prices:
    """Prices of one new node for each vector of a batch, by domain; each is found out once."""

    def __init__(self, plan_state: PlanState, batch: Batch) -> None:
        self.plan_state = plan_state
        self.batch = batch
        self._known: dict[tuple[tuple[str | None, ...], int], Purchase | None] = {}

    def of(self, labels: Mapping[str, str | None], vector: int) -> Purchase | None:
        """Return the cheapest way to buy a node with these labels for a vector, or None."""
        question = (tuple(labels.values()), vector)
        if question not in self._known:
            self._known[question] = buy(
                self.plan_state,
                signatures=[pod_group.signature for pod_group in self.batch.present(vector)],
                requests=requests_of(self.batch, vector),
                labels=labels,
            )
        return self._known[question]


class DomainCosts:
    """The costs of one domain.

    Attributes:
        labels: Of the domain, by topology key; None for a label that its nodes lack.
        spots: Nodes with room there.
        least: By vector, the least cost in micro-dollars per hour; `ENDLESS` where there is no way.
    """

    __slots__ = ("_on_new", "_on_spots", "labels", "least", "spots")

    def __init__(
        self,
        prices: Prices,
        labels: Mapping[str, str | None],
        spots: Sequence[TargetNode],
        floors: Floors,
        whole: int,
    ) -> None:
        """Work the costs out.

        Args:
            prices: Of new nodes.
            labels: Of the domain.
            spots: Nodes with room there.
            floors: What spreads over hosts are taken to end with.
            whole: All pods that are placed anywhere.
        """
        self.labels = labels
        self.spots = spots
        batch = prices.batch
        self._on_new = _on_new(prices, labels, floors, whole)
        self._on_spots: list[list[int]] = []
        self.least = [cost for cost, _ in self._on_new]
        for spot in spots:
            self._use(batch, spot, floors, whole)

    def _use(self, batch: Batch, spot: TargetNode, floors: Floors, whole: int) -> None:
        """Take a node with room into account: what fits on it costs nothing."""
        fitting = {v for v in range(len(batch.counts)) if _fits(batch, spot, v, floors, whole)}
        before, self.least, choices = self.least, [], []
        for vector in range(len(batch.counts)):
            # Of ways that cost the same, the one with most pods on the node.
            cost, _, part = min(
                (
                    (before[vector - part], -sum(batch.counts[part]), part)
                    for part in batch.parts[vector]
                    if part in fitting
                ),
                default=(ENDLESS, 0, 0),
            )
            self.least.append(cost)
            choices.append(part)
        self._on_spots.append(choices)

    def nodes(self, vector: int) -> list[tuple[TargetNode | None, int]]:
        """Return the nodes of the cheapest way, None for a new one, each with its vector."""
        found: list[tuple[TargetNode | None, int]] = []
        for spot, choice in zip(reversed(self.spots), reversed(self._on_spots), strict=True):
            if choice[vector]:
                found.append((spot, choice[vector]))
                vector -= choice[vector]
        while vector:
            part = self._on_new[vector][1]
            found.append((None, part))
            vector -= part
        return found


def _on_new(
    prices: Prices, labels: Mapping[str, str | None], floors: Floors, whole: int
) -> list[tuple[int, int]]:
    """Return, by vector, the least cost of it on new nodes, and what one of them then holds."""
    batch, fee = prices.batch, prices.plan_state.settings.node_fee_micros_per_hour
    alone = [0]
    for vector in range(1, len(batch.counts)):
        bought = prices.of(labels, vector) if _may_share_host(batch, _NEW, vector, whole) else None
        if bought is not None and floors:
            new = new_place(prices, bought, labels, _NEW)
            looking = [c for c in floors if c.scope is not None and new.within(c.scope)]
            if not batch.keeps_even(_NEW, vector, floors, looking):
                bought = None
        alone.append(ENDLESS if bought is None else bought.worth + fee)
    found = [(0, 0)]
    for vector in range(1, len(batch.counts)):
        step = batch.one(batch.first(vector))
        ways = (
            (alone[part] + found[vector - part][0], part)
            for part in batch.parts[vector]
            if part >= step and alone[part] < ENDLESS
        )
        found.append(min(ways, default=(ENDLESS, 0)))
    return found


def requests_of(batch: Batch, vector: int, there: Sequence[str] = ()) -> Resources:
    """Return what a vector asks of one node that has these shared volumes."""
    volumes, amounts = set(there), []
    for pod_group, count in zip(batch.pod_groups, batch.counts[vector], strict=True):
        if count:
            amounts.append(pod_group.requests_with(volumes, count))
            volumes.update(volume for volume, _ in pod_group.shared)
    return Resources.total(amounts)


def _fits(batch: Batch, spot: TargetNode, vector: int, floors: Floors, whole: int) -> bool:
    """Return whether a vector, which may be empty, may be on a node that is there."""
    requests = requests_of(batch, vector, tuple(spot.volumes))
    host = spot.labels.get(keys.HOSTNAME)
    return (
        all(amount <= spot.free.get(name, 0) for name, amount in requests.items)
        and all(
            pod_group.signature.accepts(spot.labels, spot.taints)
            and spot.ports_free(pod_group.ports)
            for pod_group in batch.present(vector)
        )
        and _may_share_host(batch, host, vector, whole)
        and batch.keeps_even(host, vector, floors, [c for c in floors if host in c.eligible])
    )


def new_place(
    prices: Prices, bought: Purchase, labels: Mapping[str, str | None], host: str
) -> Place:
    """Return the place that a node to be bought would be."""
    table = prices.plan_state.table
    settled = {key: value for key, value in labels.items() if value is not None}
    offer = table.offers[bought.ways[0].offer]
    found = Place("", {**settled, keys.HOSTNAME: host}, offer.provisioner.taints)
    found.become({**table.labels(bought.ways[0]), keys.HOSTNAME: host})
    return found


def _may_share_host(batch: Batch, host: str | None, vector: int, whole: int) -> bool:
    """Return whether ports and rules over hosts let the pods of a vector share a host."""
    ports = [
        port
        for pod_group, count in zip(batch.pod_groups, batch.counts[vector], strict=True)
        for port in pod_group.ports * count
    ]
    return not any(
        conflict(port, other) for place, port in enumerate(ports) for other in ports[:place]
    ) and batch.may_share(keys.HOSTNAME, host, vector, whole)


def domains_of(
    prices: Prices, spots: Sequence[TargetNode]
) -> list[tuple[dict[str, str | None], list[TargetNode]]]:
    """Return the domains in which a batch may have new nodes, or has these nodes: labels, nodes."""
    batch = prices.batch
    over = tuple(sorted({key for pod_group in batch.pod_groups for key in pod_group.kind.keys}))
    least: dict[Domain, int] = {}
    for pod_group in batch.pod_groups:
        found = prices.plan_state.launchables.domains(pod_group.signature, over, pod_group.requests)
        for domain, price in found.items():
            least[domain] = min(price, least.get(domain, price))
    by_domain: dict[Domain, list[TargetNode]] = {
        domain: [] for domain in sorted(least, key=lambda domain: (least[domain], str(domain)))
    }
    for spot in spots:
        by_domain.setdefault(tuple(spot.labels.get(key) for key in over), []).append(spot)
    return [(dict(zip(over, domain, strict=True)), there) for domain, there in by_domain.items()]
