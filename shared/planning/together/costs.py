"""What it costs to place a count vector in a domain: on its nodes with room, and on new ones."""

from collections.abc import Mapping, Sequence
from typing import Final

from shared.model import labels as keys
from shared.model.resources import Resources
from shared.planning.offerings.offering_table import Domain
from shared.planning.offerings.target_node import TargetNode
from shared.planning.placement.buying import Purchase, buy
from shared.planning.rules.labels_and_taints import ports_conflict
from shared.planning.rules.topology.counts import Place
from shared.planning.state import PlanState
from shared.planning.together.batch import Batch, Minimums

# Name of a host that does not exist.
_NEW: Final = "\x00"
INFINITE: Final = 1 << 60


class NodePrices:
    """Prices of one new node for each vector of a batch, by domain; each is computed once."""

    def __init__(self, plan_state: PlanState, batch: Batch) -> None:
        self.plan_state = plan_state
        self.batch = batch
        self._known: dict[tuple[tuple[str | None, ...], int], Purchase | None] = {}

    def of(self, labels: Mapping[str, str | None], vector: int) -> Purchase | None:
        """Return the cheapest purchase of a node with these labels for a vector, or None."""
        question = (tuple(labels.values()), vector)
        if question not in self._known:
            self._known[question] = buy(
                self.plan_state,
                node_constraints_list=[
                    pod_group.node_constraints for pod_group in self.batch.present(vector)
                ],
                requests=requests_of(self.batch, vector),
                labels=labels,
            )
        return self._known[question]


class DomainCosts:
    """The costs of placing vectors in one domain.

    Attributes:
        labels: Of the domain, by topology key; None for a label that its nodes lack.
        targets: Nodes with room there.
        least: By vector, the least cost in micro-dollars per hour; `INFINITE` if it cannot be
            placed.
    """

    __slots__ = ("_on_new", "_on_targets", "labels", "least", "targets")

    def __init__(
        self,
        prices: NodePrices,
        labels: Mapping[str, str | None],
        targets: Sequence[TargetNode],
        minimums: Minimums,
        all_placed: int,
    ) -> None:
        """Compute the costs.

        Args:
            prices: Of new nodes.
            labels: Of the domain.
            targets: Nodes with room there.
            minimums: What spreads over hosts are assumed to end with.
            all_placed: All pods that are placed anywhere.
        """
        self.labels = labels
        self.targets = targets
        batch = prices.batch
        self._on_new = _on_new(prices, labels, minimums, all_placed)
        self._on_targets: list[list[int]] = []
        self.least = [cost for cost, _ in self._on_new]
        for target in targets:
            self._add_target(batch, target, minimums, all_placed)

    def _add_target(
        self, batch: Batch, target: TargetNode, minimums: Minimums, all_placed: int
    ) -> None:
        """Add a node with room: what fits on it costs nothing."""
        fitting = {
            v for v in range(len(batch.counts)) if _fits(batch, target, v, minimums, all_placed)
        }
        before, self.least, choices = self.least, [], []
        for vector in range(len(batch.counts)):
            # Of equal costs, take the part with most pods on the node.
            cost, _, part = min(
                (
                    (before[vector - part], -sum(batch.counts[part]), part)
                    for part in batch.parts[vector]
                    if part in fitting
                ),
                default=(INFINITE, 0, 0),
            )
            self.least.append(cost)
            choices.append(part)
        self._on_targets.append(choices)

    def nodes(self, vector: int) -> list[tuple[TargetNode | None, int]]:
        """Return the nodes of the cheapest placement, None for a new one, each with its vector."""
        found: list[tuple[TargetNode | None, int]] = []
        for target, choice in zip(reversed(self.targets), reversed(self._on_targets), strict=True):
            if choice[vector]:
                found.append((target, choice[vector]))
                vector -= choice[vector]
        while vector:
            part = self._on_new[vector][1]
            found.append((None, part))
            vector -= part
        return found


def _on_new(
    prices: NodePrices, labels: Mapping[str, str | None], minimums: Minimums, all_placed: int
) -> list[tuple[int, int]]:
    """Return, by vector, its least cost on new nodes, and what one of them then holds."""
    batch, fee = prices.batch, prices.plan_state.settings.node_fee_micros_per_hour
    alone = [0]
    for vector in range(1, len(batch.counts)):
        bought = (
            prices.of(labels, vector) if _may_share_host(batch, _NEW, vector, all_placed) else None
        )
        if bought is not None and minimums:
            new = new_place(prices, bought, labels, _NEW)
            looking = [c for c in minimums if c.scope is not None and new.within(c.scope)]
            if not batch.keeps_within_skew(_NEW, vector, minimums, looking):
                bought = None
        alone.append(INFINITE if bought is None else bought.comparison_price + fee)
    found = [(0, 0)]
    for vector in range(1, len(batch.counts)):
        step = batch.one_pod(batch.first(vector))
        choices = (
            (alone[part] + found[vector - part][0], part)
            for part in batch.parts[vector]
            if part >= step and alone[part] < INFINITE
        )
        found.append(min(choices, default=(INFINITE, 0)))
    return found


def requests_of(batch: Batch, vector: int, there: Sequence[str] = ()) -> Resources:
    """Return what a vector requests of one node to which these volumes are attached."""
    volumes, amounts = set(there), []
    for pod_group, count in zip(batch.pod_groups, batch.counts[vector], strict=True):
        if count:
            amounts.append(pod_group.requests_with(volumes, count))
            volumes.update(volume for volume, _ in pod_group.shared_volumes)
    return Resources.total(amounts)


def _fits(
    batch: Batch, target: TargetNode, vector: int, minimums: Minimums, all_placed: int
) -> bool:
    """Return whether a vector, which may be empty, fits on an existing node."""
    requests = requests_of(batch, vector, tuple(target.volumes))
    host = target.labels.get(keys.HOSTNAME)
    return (
        all(amount <= target.available.get(name, 0) for name, amount in requests.items)
        and all(
            pod_group.node_constraints.accepts(target.labels, target.taints)
            and target.ports_free(pod_group.ports)
            for pod_group in batch.present(vector)
        )
        and _may_share_host(batch, host, vector, all_placed)
        and batch.keeps_within_skew(
            host, vector, minimums, [c for c in minimums if host in c.eligible]
        )
    )


def new_place(
    prices: NodePrices, bought: Purchase, labels: Mapping[str, str | None], host: str
) -> Place:
    """Return the place that a node to be launched would be."""
    table = prices.plan_state.table
    decided = {key: value for key, value in labels.items() if value is not None}
    offer = table.offers[bought.options[0].offer]
    found = Place("", {**decided, keys.HOSTNAME: host}, offer.provisioner.taints)
    found.update_labels({**table.labels(bought.options[0]), keys.HOSTNAME: host})
    return found


def _may_share_host(batch: Batch, host: str | None, vector: int, all_placed: int) -> bool:
    """Return whether ports and rules over hosts let the pods of a vector share a host."""
    ports = [
        port
        for pod_group, count in zip(batch.pod_groups, batch.counts[vector], strict=True)
        for port in pod_group.ports * count
    ]
    return not any(
        ports_conflict(port, other) for number, port in enumerate(ports) for other in ports[:number]
    ) and batch.may_share(keys.HOSTNAME, host, vector, all_placed)


def domains_of(
    prices: NodePrices, targets: Sequence[TargetNode]
) -> list[tuple[dict[str, str | None], list[TargetNode]]]:
    """Return the domains of new nodes for a batch and of these nodes, as (labels, nodes there)."""
    batch = prices.batch
    topology_keys = tuple(
        sorted({key for pod_group in batch.pod_groups for key in pod_group.topology.keys})
    )
    least: dict[Domain, int] = {}
    for pod_group in batch.pod_groups:
        found = prices.plan_state.offerings.domains(
            pod_group.node_constraints, topology_keys, pod_group.requests
        )
        for domain, price in found.items():
            least[domain] = min(price, least.get(domain, price))
    by_domain: dict[Domain, list[TargetNode]] = {
        domain: [] for domain in sorted(least, key=lambda domain: (least[domain], str(domain)))
    }
    for target in targets:
        by_domain.setdefault(tuple(target.labels.get(key) for key in topology_keys), []).append(
            target
        )
    return [
        (dict(zip(topology_keys, domain, strict=True)), there)
        for domain, there in by_domain.items()
    ]
