"""What must hold of machines that served nobody: each counts as a trial, however it went."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from shared.model import labels as keys
from shared.model.ec2.launches import Slot
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.nodes.brakes.runaway import plan_of, recent_trials, subjects_of
from tests.simulation.cluster.workloads import JOB
from tests.simulation.laws.launches import fail
from tests.simulation.schedule.faults import Site
from tests.simulation.schedule.kernel import Process

if TYPE_CHECKING:
    from tests.simulation.schedule.world import World

# What is called last when a machine is given up that never joined, or that is empty.
GIVING_UP: Final = frozenset({"drop_slot", "delete_node"})
# Reads which pods a machine that does not join was launched for.
READING: Final = "slot_with"


class TrialLaws:
    """Watches the ends of machines.

    Two that were of no use to a pod end the buying for its like. A machine that Dovetail gives up,
    and that ran nothing, was such a trial for the pods that it was launched for and that still
    wait. What EC2 or a user ended says nothing, nor one with less room than was said of its type:
    that is learnt. Pods of Jobs are left out, as what one like it runs on forgives them, and pods
    that are promised to it while it is being given up.
    """

    def __init__(self, world: "World") -> None:
        self._world = world
        # By invocation, what it read first of the slot of the machine.
        self._read: dict[int, Slot | None] = {}

    def after(self, process: Process, answer: Slot | None) -> None:
        self._read.setdefault(process.number, answer)

    def before(self, process: Process, site: Site, args: tuple[Any, ...], cluster: str) -> None:
        if site.method == "drop_slot" and process.function == "registration":
            slot: Slot = args[0]
            known = self._read.get(process.number) or slot
            pods = set(slot.pods) & set(known.pods)
            self._counted(slot.cluster, slot.instance_id, slot.plan_id, pods)
        elif site.method == "delete_node":
            node: Node = args[0]
            if node.annotations.get(keys.REMOVAL_REASON) == "emptiness":
                self._counted(cluster, node.instance_id, plan_of(node), self._promised(node))

    def _promised(self, node: Node) -> set[Any]:
        """Return the pods that were ever promised to a node."""
        return {
            ref
            for slot in self._world.ledger.written_slots
            if slot.instance_id == node.instance_id
            for ref in slot.pods
        }

    def _counted(self, cluster: str, instance_id: str, plan: str, refs: Iterable[Any]) -> None:
        world, api = self._world, self._world.apis[cluster]
        machine = world.region.machines.get(instance_id)
        if machine is None or machine.ran or machine.taken or machine.spared:
            return
        if instance_id in world.sides[cluster].smaller:
            return
        uids = {ref.uid for ref in refs}
        waiting = [pod for pod in api.pods.values() if pod.uid in uids and self._waits(pod)]
        trials = recent_trials(world.ledger, cluster, world.kernel.now())
        subjects = frozenset[str]().union(
            *(trial.subjects for trial in trials if trial.plan_id == plan)
        )
        for pod in waiting:
            if not subjects & subjects_of(pod).keys():
                fail("trial", f"{instance_id} of {plan} is given up, and {pod.key} still waits")

    def _waits(self, pod: Pod) -> bool:
        return pod.is_provisionable and pod.owner is not None and pod.owner.kind != JOB
