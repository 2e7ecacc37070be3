"""One step of a shadow record: what Dovetail would do about a cluster as it is now.

Pure: the time is that of the observation, and the same fleet, observation and rules give the same
step. docs/shadow.md says what is simulated, and how.
"""

from typing import Final

from functions.cli.shadow.compared_pools import ComparedPools, compared_pools, shown_key
from functions.cli.shadow.fleet import (
    ComparedPurchase,
    Fleet,
    Observation,
    RealNode,
    RecordProgress,
    Step,
    run_of,
)
from functions.cli.shadow.simulation import ShadowRules, Simulation
from shared.model.values import replace
from shared.provisioning.savings.inventory import CatalogPrices
from shared.provisioning.savings.purchases import compare, purchases

BUYER: Final = "the autoscaler"
# Each comparison takes a plan: further purchases wait for the next step.
_MOST_COMPARED: Final = 5


def step(fleet: Fleet, observed: Observation, rules: ShadowRules) -> Step:
    """Return the fleet after an observation, and what Dovetail would do.

    The first observation makes the fleet of the nodes that run. An observation that is not later
    than the last one changes nothing.
    """
    last = fleet.progress
    if last is not None and observed.at <= last.last_at:
        return Step(fleet=fleet)
    prices = CatalogPrices(rules.instance_types)
    priced = [node for node in observed.nodes if prices.of_node(node) is not None]
    new = {shown_key(node): node for node in sorted(priced, key=lambda node: node.name)}
    shown = {**new, **fleet.shown}
    pools = compared_pools(observed, tuple(shown.values()), rules.instance_types, rules.pools)
    real = _real_nodes(fleet, observed, pools)
    running = [node for node in observed.nodes if pools.price_of(node) is not None]
    compared = {node.name for node in running}
    simulation = Simulation(
        observed,
        rules,
        pools,
        _progress_after(last, observed, rules),
        fleet.nodes,
        sum(real[node.uid].run.price_micros_per_hour for node in running),
    )
    if last is None:
        simulation.take_over(running)
        simulation.keep_pods(simulation.pods_on(compared), compared)
    else:
        simulation.keep_pods(fleet.places, compared)
    simulation.place_waiting()
    evaluated = simulation.progress.evaluated_at
    if evaluated is None or observed.at - evaluated >= rules.evaluate_every:
        simulation.evaluate()
    made = _compare_purchases(simulation, observed, rules, pools, real)
    return Step(
        fleet=Fleet(
            progress=simulation.progress,
            nodes=simulation.nodes,
            places=simulation.places,
            real=real,
            shown=shown,
        ),
        decisions=tuple(simulation.decisions),
        purchases=made,
        notes=pools.notes,
    )


def _progress_after(
    last: RecordProgress | None, observed: Observation, rules: ShadowRules
) -> RecordProgress:
    at = observed.at
    if last is None:
        return RecordProgress(span_began_at=at, last_at=at)
    passed = at - last.last_at
    last = replace(last, observations=last.observations + 1)
    if passed > rules.longest_pause:
        return replace(last, span_began_at=at, last_at=at)
    waited = len(last.unplaced) * int(passed.total_seconds())
    return replace(last, last_at=at, unplaced_pod_seconds=last.unplaced_pod_seconds + waited)


def _real_nodes(fleet: Fleet, observed: Observation, pools: ComparedPools) -> dict[str, RealNode]:
    """Return the nodes that run, and those that ended since the last observation."""
    first = fleet.progress is None
    known = {uid: entry for uid, entry in fleet.real.items() if entry.run.ended_at is None}
    found = {}
    for node in observed.nodes:
        price = pools.price_of(node)
        if price is not None:
            run = run_of(node, price, observed.at)
            found[node.uid] = known.get(node.uid) or RealNode(run=run, is_compared=first)
    last_at = observed.at if fleet.progress is None else fleet.progress.last_at
    gone = {
        uid: replace(entry, run=replace(entry.run, ended_at=last_at))
        for uid, entry in known.items()
        if uid not in found
    }
    return found | gone


def _compare_purchases(
    simulation: Simulation,
    observed: Observation,
    rules: ShadowRules,
    pools: ComparedPools,
    real: dict[str, RealNode],
) -> tuple[ComparedPurchase, ...]:
    """Compare purchases of the autoscaler that can be compared now, in the real cluster.

    Their nodes are marked in `real`.
    """
    running = [node for node in observed.nodes if pools.price_of(node) is not None]
    reported = {uid for uid, entry in real.items() if entry.is_compared}
    bound = [pod for pod in observed.pods if pod.node_name]
    found = purchases(running, bound, reported, observed.at)[:_MOST_COMPARED]
    if not found:
        return ()
    scene = pools.scene("real", observed, observed.nodes, bound)
    made = []
    for bought in found:
        for node in bought:
            real[node.uid] = replace(real[node.uid], is_compared=True)
        compared = compare(scene, bought, rules.packing, BUYER)
        simulation.record(compared.text)
        made.append(
            ComparedPurchase(
                at=min(node.created_at or observed.at for node in bought),
                pods=compared.pods,
                bought_nodes=len(bought),
                bought=compared.bought_kinds,
                bought_micros_per_hour=compared.bought_micros_per_hour,
                planned_nodes=len(compared.planned),
                planned=compared.planned_kinds,
                planned_micros_per_hour=compared.planned_micros_per_hour,
                unplaced=": ".join(compared.unplaced[0]) if compared.unplaced else "",
            )
        )
    return tuple(made)
