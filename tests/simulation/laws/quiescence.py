"""What must hold once faults and users are quiet."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.plan import Plan
from shared.model.values import replace
from shared.nodes.brakes.ceilings import (
    OverCeiling,
    affordable,
    with_kubelet_resources,
)
from shared.nodes.brakes.runaway import recent_trials, runaways
from shared.nodes.leave.replacement import REPLACED
from shared.nodes.timers.heartbeats import last_heartbeats
from shared.planning.decide import decide
from shared.ports import ClusterPorts
from shared.snapshot.gather import gather
from tests.simulation.cluster.apiserver import ApiServer
from tests.simulation.schedule.world import World

# So many machines that were of no use to a pod end the buying for it, for an hour.
_RUNAWAY: Final = 2


def unrest(world: World) -> list[str]:
    """Return what is not yet as it must be, each as `invariant: text`."""
    found = []
    for name in sorted(world.apis):
        mine = list(_of_cluster(world, name))
        waiting = [pod for pod in world.apis[name].pods.values() if not _runs(pod)]
        if waiting and all(value.startswith("drain:") for value in mine):
            mine = _excused(world, name, waiting, mine)
        found.extend(mine)
    return found


def _of_cluster(world: World, name: str) -> Iterator[str]:
    api = world.apis[name]
    # The finalizer keeps a Node, whatever a kubelet made of what else says whose it is.
    held = {
        node_value.instance_id: node_value
        for node_value in api.node_values.values()
        if (node_value.provisioner or keys.TERMINATION_FINALIZER in node_value.finalizers)
        and world.region.machines[node_value.instance_id].is_ours
    }
    ours = {key: node_value for key, node_value in held.items() if node_value.provisioner}
    alive = {machine.instance.instance_id for machine in world.region.alive(name)}
    kept = {machine.instance.instance_id for machine in world.region.kept(name)}
    if world.invariants.launches.was_misled(name) or world.sides[name].released:
        # What was launched twice, or lost its Node before it joined, joins by itself: the Node that
        # its kubelet made keeps it from sweep.
        kept -= {node_value.instance_id for node_value in api.node_values.values()}
    for our in sorted(kept - set(ours)):
        yield f"orphan: {name}: {our} is kept without a Node"
    for our in sorted(set(held) - alive):
        yield f"lost: {name}: {held[our].name} has no machine"
    yield from _nodes(name, ours.values())
    yield from _rows(world, name)
    yield from _empty(api, ours.values())


def _nodes(name: str, ours: Iterable[Node]) -> Iterator[str]:
    for node in ours:
        if keys.TERMINATION_FINALIZER not in node.finalizers:
            yield f"finalizer: {name}: {node.name} has none"
        if node.deletion_at is not None:
            yield f"drain: {name}: {node.name} is still being deleted"
        elif not node.is_initialized:
            yield f"initialized: {name}: {node.name} is not"


def _rows(world: World, name: str) -> Iterator[str]:
    api, ledger, now = world.apis[name], world.ledger, world.kernel.now()
    for intent in ledger.open_intents(name):
        yield f"intent: {name}: {intent.plan_id}/{intent.group} is open"
    # The slot of a node that is being deleted goes with it, one whose Node a user took with its
    # machine.
    going = {
        node_value.instance_id
        for node_value in api.node_values.values()
        if node_value.deletion_at is not None
    }
    for slot in ledger.slots(name):
        if slot.instance_id in going or world.region.machines[slot.instance_id].released:
            continue
        yield f"slot: {name}: {slot.name} of {slot.instance_id} is still there"
    # Without sweep an expired lease stays until the next function acquires it.
    if ledger.is_held(name) and (world.scene.sweeps or not ledger.abandoned(name, now)):
        yield f"lease: {name}: still held"
    uids = {node_value.uid for node_value in api.node_values.values()}
    for uid, kind in last_heartbeats(ledger, name):
        # That a node was replaced is remembered for some minutes, on purpose.
        if uid not in uids and world.scene.sweeps and kind != REPLACED:
            yield f"timer row: {name}: {kind} of {uid}, which is gone"


def _empty(api: ApiServer, ours: Iterable[Node]) -> Iterator[str]:
    for node in ours:
        owner = api.provisioner_values.get(node.provisioner)
        if owner is None or owner.ttl_after_empty is None:
            continue
        if not any(pod.counts_for_emptiness for pod in api.pods_of_node(node.name)):
            yield f"empty: {api.name}: {node.name} is still there"


def _excused(world: World, name: str, waiting: list[Pod], drains: list[str]) -> list[str]:
    """Return what is wrong besides pods that nothing may run, and drains that wait for those."""
    if any(pod.node_name or pod.is_terminating for pod in waiting):
        return [*drains, f"pod: {name}: {waiting[0].key} is on its way"]
    api = world.apis[name]
    given_up = _given_up(world, name, waiting) | frozenset(
        pod.uid for pod in waiting if api.workloads[pod.labels["app"]].unprovisioned
    )
    plan, over = _plan(world, name, given_up)
    could = [f"{node.pods[0].key} could run on a new node" for node in plan.nodes]
    could += [
        f"{placement.pods[0].key} could run on {placement.node}" for placement in plan.placements
    ]
    could += [f"{pod.key} is not yet looked at" for pod in waiting if not pod.unschedulable]
    if could:
        return [*drains, *(f"pending: {name}: {text}" for text in could)]
    # At a limit, a budget may hold a drain for good: what it evicted has nowhere to go.
    nowhere = [pod_left.pod for pod_left in plan.unschedulable]
    nowhere += [pod for over_ceiling in over for pod in over_ceiling.node.pods]
    stuck = {api.pods[pod_ref.key].labels["app"] for pod_ref in nowhere}
    # Nothing is bought for these, so what they were evicted for may wait, too.
    stuck |= {pod.labels["app"] for pod in waiting if pod.uid in given_up}
    return _without_stuck(api, drains, stuck)


def _without_stuck(api: ApiServer, drains: list[str], stuck: set[str]) -> list[str]:
    """Return the drains but for those that a budget holds, of workloads that cannot grow."""
    return [
        drain
        for drain in drains
        if not any(
            pod.labels["app"] in stuck and api.is_held(pod)
            for pod in api.pods_of_node(drain.split()[2])
        )
    ]


def _given_up(world: World, name: str, waiting: Sequence[Pod]) -> frozenset[str]:
    """Return the uids of pods nothing is bought for, as two machines were of no use to their like.

    The product must have written that down, and it must be true.
    """
    useless = _useless(world, name)
    told = runaways(waiting, recent_trials(world.ledger, name, world.kernel.now()))
    return frozenset(
        pod.uid for pod in waiting if pod.uid in told and useless[pod.labels["app"]] >= _RUNAWAY
    )


def _useless(world: World, name: str) -> Counter[str]:
    """Return how many machines of the last hour were of no use to a workload, by workload.

    EC2 let them be, and either one was promised to pods of the workload, alone or with others, and
    never ran any, or its kubelet refused one. One that an agent tainted was of no use to all that
    waited then.
    """
    begun = world.kernel.time - 3600 * 1_000_000
    machines = {
        machine.instance.instance_id: machine
        for machine in world.region.machines.values()
        if machine.cluster == name and machine.born >= begun and not machine.taken
    }
    promised = {
        (slot.instance_id, ref.name.rpartition("-")[0])
        for slot in world.ledger.written_slots
        for ref in slot.pods
        if slot.instance_id in machines
    }
    found = {
        (value, workload) for value, workload in promised if workload not in machines[value].ran
    }
    found |= {(key, workload) for key, machine in machines.items() for workload in machine.rejected}
    tainted = world.sides[name].tainted & machines.keys()
    found |= {(key, workload) for key in tainted for workload in world.apis[name].workloads}
    return Counter(workload for _, workload in found)


def _plan(world: World, name: str, given_up: frozenset[str]) -> tuple[Plan, Sequence[OverCeiling]]:
    """Return what the planner itself would do now: the second opinion on who could run.

    Args:
        given_up: Uids of pods it is not asked about.

    Returns:
        The plan, and the nodes that ceilings keep out of it.
    """
    ports = ClusterPorts(
        cluster=world.apis[name],
        cloud=world.clouds[name],
        catalog=world.catalog,
        ledger=world.ledger,
        decisions=world.decisions,
        outbox=world.outbox,
        clock=world.clouds[name].clock,
    )
    snapshot, ceiling = gather(ports, "oracle").snapshot, world.ceilings[name]
    packing = world.functions.runtimes["provision"]._packing
    snapshot = replace(snapshot, promised=snapshot.promised | given_up)
    plan = decide(replace(snapshot, ceiling=ceiling), packing)
    kept, over = affordable(snapshot, with_kubelet_resources(plan.nodes), ceiling)
    return replace(plan, nodes=kept), over


def _runs(pod: Pod) -> bool:
    return pod.is_terminal or (pod.phase == "Running" and not pod.is_terminating)
