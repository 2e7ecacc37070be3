"""What must always hold, checked at each call, and what must hold once all is quiet."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from shared.disruption.drain import is_drainable
from shared.model import labels as keys
from shared.model.brakes import Ceiling
from shared.model.ec2.launches import Slot
from shared.model.errors import ConflictError, RetryableError, UnavailableError
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.resources import CPU, MEMORY, Resources
from shared.ports import NodeChange
from tests.simulation.aws.machines import Machine
from tests.simulation.cluster.workloads import used_on
from tests.simulation.laws.intents import OF_INTENTS, IntentLaws
from tests.simulation.laws.launches import ANSWERED, LAUNCHING, LaunchLaws, fail
from tests.simulation.laws.rights import within_rights
from tests.simulation.laws.trials import GIVING_UP, READING, TrialLaws
from tests.simulation.schedule.faults import Site
from tests.simulation.schedule.kernel import Process

if TYPE_CHECKING:
    from tests.simulation.schedule.world import World


# Calls that brakes forbid, and the functions that make them by choice.
_BY_CHOICE: Final = {
    "create_fleet": frozenset({"provision"}),
    "delete_node": frozenset({"emptiness", "expiration", "replacement"}),
}


# Calls that are checked in every function; those of provision are watched besides.
_WATCHED_BEFORE: Final = frozenset(
    {
        *_BY_CHOICE,
        "terminate",
        "change_node",
        "delete_node",
        "delete_pod",
        "force_delete_pod",
        "bind_all",
    }
)
_WATCHED_AFTER: Final = frozenset({"pods_on", "create_node", "bind_all", "mark_unavailable"})


class Invariants:
    """Implements recorder.Witness for a world.

    Attributes:
        also: A second observer, called before each call is carried out.
    """

    def __init__(self, world: "World") -> None:
        self._world = world
        self.launches = LaunchLaws(world)
        self.intents = IntentLaws(world)
        self.trials = TrialLaws(world)
        self.checks = 0
        self._read: set[tuple[int, str]] = set()
        self.also: Callable[[Process, Site, tuple[Any, ...], str], None] | None = None

    def trouble(self, cluster: str, port: str, method: str) -> RetryableError | None:
        world = self._world
        if port == "cluster":
            if world.kernel.time < world.apis[cluster].away_until:
                return UnavailableError(f"{port}.{method}: no answer")
            return None
        if world.kernel.time < world.weather.bad_until:
            return world.weather.strikes(port, method)
        return None

    def delays(self, port: str) -> int:
        weather = self._world.weather
        return weather.delays(port) if self._world.kernel.time < weather.bad_until else 0

    def before(self, process: Process, site: Site, args: tuple[Any, ...], cluster: str) -> None:
        self.checks += 1
        within_rights(process, site, args)
        if self.also is not None:
            self.also(process, site, args, cluster)
        if process.function == "provision" and site.method in LAUNCHING:
            self.launches.before(process, site, args, cluster)
            if site.method == "create_fleet":
                self.intents.asked(process, args[0])
        if site.method in GIVING_UP:
            self.trials.before(process, site, args, cluster)
        if site.method not in _WATCHED_BEFORE:
            return
        if site.method in _BY_CHOICE and cluster in self._world.brakes:
            self._held_back(process, site, cluster)
        if site.method == "delete_node" and process.function in _BY_CHOICE[site.method]:
            self._was_read(process, args[0], cluster)
        if site.method == "change_node" and args[1].unschedulable is True:
            self._read.discard((process.number, args[0].name))
        self._may(process, site, args, cluster)

    def _may(self, process: Process, site: Site, args: tuple[Any, ...], cluster: str) -> None:
        """Check that a call is allowed, from any function."""
        match site.method:
            case "terminate":
                for arg in args[0]:
                    self._may_end(arg)
            case "change_node" | "delete_node":
                self._may_change(args[0], args[1] if len(args) > 1 else NodeChange())
                if site.method == "delete_node":
                    self._is_emptied(cluster, args[0])
            # Minutes ahead of time, the end of a machine that EC2 takes back seems to have come.
            case "delete_pod" if not process.is_wrong:
                self._may_delete(cluster, args[0])
            case "force_delete_pod":
                self._may_force(cluster, args[0])
            case "bind_all":
                self._may_bind(site, cluster, args[0])

    def after(
        self, process: Process, site: Site, args: tuple[Any, ...], answer: object, cluster: str
    ) -> None:
        if process.function == "provision" and site.method in ANSWERED:
            self.launches.after(process, site, args, answer, cluster)
        if process.function == "provision" and site.method in OF_INTENTS:
            self.intents.after(process, site, args, answer)
        if process.function == "registration" and site.method == READING:
            assert answer is None or isinstance(answer, Slot)
            self.trials.after(process, answer)
        if site.method not in _WATCHED_AFTER:
            return
        match site.method:
            case "pods_on" if self._is_cordoned(cluster, args[0]):
                self._read.add((process.number, args[0]))
            case "create_node":
                assert isinstance(answer, Node)
                self._is_held(answer)
            case "mark_unavailable":
                self._shared(site)
            case "bind_all":
                for node in sorted({where for _, where in args[0]}):
                    self._holds(site, cluster, node)

    def ended(self, process: Process, outcome: object) -> None:
        if process.function == "provision":
            self.launches.ended(process, outcome)
            self.intents.ended(process, outcome)
        elif isinstance(outcome, ConflictError) and str(outcome).startswith("node "):
            fail("conflict", f"{process.function} ends by what controllers write: {outcome}")

    def launched(self, machine: Machine) -> None:
        """Check the limits of the machine's provisioner and cluster the moment it exists."""
        self.launches.launched(machine)
        if self.launches.is_misled(machine.cluster):
            return
        self.intents.launched(machine)
        world = self._world
        # What a user took the Node of counts no more until sweep ends it.
        standing = [m for m in world.region.alive(machine.cluster) if not m.released]
        of_cluster = world.ceilings[machine.cluster]
        if of_cluster:
            self._under(of_cluster, machine, standing)
        name = machine.instance.tags.get(keys.PROVISIONER_NAME, "")
        owner = world.apis[machine.cluster].provisioner_values.get(name)
        if owner is None or not (owner.limits or owner.ceiling):
            return
        mine = [
            machine
            for machine in standing
            if machine.instance.tags.get(keys.PROVISIONER_NAME) == name
        ]
        if owner.ceiling:
            self._under(owner.ceiling, machine, mine)
        if owner.limits is None:
            return
        bought = Resources.total(
            world.types[machine.instance.offering.instance_type].capacity for machine in mine
        )
        for resource, most in owner.limits.items:
            if bought[resource] > most:
                fail(
                    "limits",
                    f"{machine.cluster}/{name}: {bought[resource]} {resource} of {most} at "
                    f"{machine.instance.instance_id}",
                )

    def _under(self, ceiling: Ceiling, machine: Machine, mine: Sequence[Machine]) -> None:
        """Check that the machines stay within the ceilings on nodes and dollars."""
        nodes, dollars = ceiling.max_nodes, ceiling.max_price_micros_per_hour
        price = sum(
            self._world.clouds[machine.cluster].prices[machine.instance.offering]
            for machine in mine
        )
        if nodes is not None and len(mine) > nodes:
            fail("ceiling", f"{machine.cluster}: {len(mine)} machines of {nodes}")
        if dollars is not None and price > dollars:
            fail("ceiling", f"{machine.cluster}: {price} micro-dollars an hour of {dollars}")

    # --- safety

    def _held_back(self, process: Process, site: Site, cluster: str) -> None:
        """Check that no process started under the brakes acts by choice."""
        since, brakes = self._world.brakes[cluster]
        if process.began > since and process.function in _BY_CHOICE[site.method]:
            what = "paused" if brakes.paused else "in shadow mode"
            fail("brake", f"{site}: {cluster} is {what}")

    def _may_end(self, instance_id: str) -> None:
        machine = self._world.region.machines.get(instance_id)
        if machine is None or not machine.instance.tags.get(keys.TAG_CLUSTER):
            fail("foreign", f"terminate {instance_id}: not ours")
            return
        if machine.ended is not None:
            return
        api = self._world.apis[machine.cluster]
        name = machine.instance.private_dns_name
        gone = name not in api.node_values
        if gone or name not in self._world.sides[machine.cluster].kubelets:
            # Pods of a Node that a user took away are on no node that could be drained.
            return
        now = self._world.kernel.now()
        for pod in api.pods_of_node(name):
            if pod.phase == "Running" and not pod.is_terminating and is_drainable(pod, now):
                fail("drain", f"terminate {instance_id} under running {pod.key}")

    def _may_change(self, node: Node, change: NodeChange) -> None:
        machine = self._world.region.machines.get(node.instance_id)
        # A Node that a launched machine's kubelet made first is adopted with one write, and one
        # whose kubelet removed what makes it Dovetail's is put right.
        marks = change.set_annotations.keys() | change.set_labels.keys()
        adopted = machine is not None and marks & {keys.SLOT, *keys.OWNER_LABELS}
        if not (node.provisioner or adopted):
            fail("foreign", f"node {node.name} is not ours")
        if change.finalizers is None or keys.TERMINATION_FINALIZER in change.finalizers:
            return
        if machine is None or not machine.is_ours:
            return
        attached = self._world.apis[machine.cluster].attachments.get(node.name, ())
        if attached and not _is_out_of_service(node):
            fail("volumes", f"node {node.name} released with {attached[0]} attached to it")
        if machine.ended is not None and self._world.kernel.time >= machine.gone:
            return
        if machine.ended is None:
            fail("finalizer", f"node {node.name} released while its machine runs")
        for pod in self._world.apis[machine.cluster].pods_of_node(node.name):
            if not (pod.is_daemon or pod.is_static or pod.is_terminal):
                fail("finalizer", f"node {node.name} released under {pod.key}, which may still run")

    def _is_cordoned(self, cluster: str, name: str) -> bool:
        node = self._world.apis[cluster].node_values.get(name)
        return node is not None and node.unschedulable

    def _was_read(self, process: Process, node: Node, cluster: str) -> None:
        """Check that nothing is removed by choice whose pods were not read after the cordon."""
        if (process.number, node.name) not in self._read:
            fail("unread", f"{process.function}: {node.name} of {cluster} is removed unseen")

    def _is_emptied(self, cluster: str, node: Node) -> None:
        """Check that no pod that counts is on a node that is removed as empty, the moment it is.

        kube-scheduler uses no cordoned node: what came before was to be read after the cordon. A
        pod that leaves stays on a node whose kubelet has stopped until the Node is gone.
        """
        if node.annotations.get(keys.REMOVAL_REASON) != "emptiness":
            return
        for pod in self._world.apis[cluster].pods_of_node(node.name):
            stays = pod.is_terminating and node.ready is not True
            if pod.keeps_its_node and not stays:
                fail("emptied", f"node {node.name} is removed as empty under {pod.key}")

    def _may_delete(self, cluster: str, pod: Pod) -> None:
        api = self._world.apis[cluster]
        known = api.pods.get(pod.key)
        if known is None or known.uid != pod.uid or not known.ready or known.is_terminating:
            return
        workload = api.workloads.get(known.labels.get("app", ""))
        if workload is None or workload.unavailable is None:
            return
        node = api.node_values.get(known.node_name)
        machine = self._world.region.machines.get(node.instance_id) if node is not None else None
        if machine is not None and machine.taken:
            # EC2 took it back: it does not run any more, whatever its status says until then.
            return
        if api.healthy(workload) - 1 < workload.replicas - workload.unavailable:
            fail("budget", f"delete_pod {pod.key} breaks its budget")

    def _may_bind(self, site: Site, cluster: str, bindings: Sequence[tuple[Pod, str]]) -> None:
        """Check that no pod is bound to a node that kube-scheduler may be filling."""
        api = self._world.apis[cluster]
        for pod, name in bindings:
            known, node = api.pods.get(pod.key), api.node_values.get(name)
            waits = known is not None and known.uid == pod.uid and not known.node_name
            if waits and node is not None and node.is_open:
                fail("open", f"{site}: {pod.key} to {name}, which kube-scheduler uses")

    def _may_force(self, cluster: str, pod: Pod) -> None:
        """Check that a pod that no kubelet is asked about runs on none, and frees its volumes."""
        api = self._world.apis[cluster]
        node = api.node_values.get(pod.node_name)
        if api.attachments.get(pod.node_name) and node and not _is_out_of_service(node):
            fail(
                "volumes", f"force_delete_pod {pod.key}: {node.name} keeps its volumes for minutes"
            )
        machine = self._world.region.machines.get(node.instance_id) if node is not None else None
        # Containers go on though their kubelet has stopped.
        off = machine is None or (machine.leaves and self._world.kernel.time >= machine.off)
        if not off or pod.node_name in self._world.sides[cluster].kubelets:
            known = api.pods.get(pod.key)
            if known is not None and known.uid == pod.uid:
                fail("twice", f"force_delete_pod {pod.key}: {pod.node_name} may still run it")

    def _shared(self, site: Site) -> None:
        """Check that no refusal of one cluster's own making changes what others may buy.

        What counts is what a cluster that never bought anything may not buy now.
        """
        world = self._world
        others = world.ledger.unavailable_offerings(world.kernel.now())
        own = sorted(others - world.region.lacking)
        if own:
            fail("shared", f"{site}: no cluster may buy {own[0]}, which EC2 is not short of")

    def _is_held(self, node: Node) -> None:
        machine = self._world.region.machines.get(node.instance_id)
        if machine is not None and self._world.kernel.time < machine.running:
            fail("early", f"node {node.name} was made while its machine is pending")
        kubelet_made = node.uid.startswith("uid-kubelet-")
        if not kubelet_made and keys.TERMINATION_FINALIZER not in node.finalizers:
            fail("finalizer", f"node {node.name} was made without it")

    def _holds(self, site: Site, cluster: str, name: str) -> None:
        """Check that what is bound to a node fits into its machine, as far as the reader could see.

        It may have begun from a copy of the pods that had drifted: see the law about reads.
        """
        api = self._world.apis[cluster]
        node = api.node_values.get(name)
        machine = self._world.region.machines.get(node.instance_id) if node else None
        if (
            node is None
            or machine is None
            or node.instance_id in self._world.sides[cluster].smaller
            or api.is_misread()
        ):
            return
        offering = machine.instance.offering
        room = self._world.types[offering.instance_type].allocatable
        pods = [pod for pod in api.pods_of_node(name) if not pod.is_terminal]
        cpu, memory, _ = used_on(pods)
        if cpu > room[CPU] or memory > room[MEMORY]:
            who = ", ".join(pod.key for pod in pods)
            fail("room", f"{site}: {cpu} millicores, {memory} bytes on {name}: {who}")
        for pod in pods:
            if not pod.scheduling.node_selector.allow_labels({**node.labels, **offering.labels}):
                fail("labels", f"{pod.key} on {name}")


def _is_out_of_service(node: Node) -> bool:
    return any(taint.key == keys.OUT_OF_SERVICE_TAINT for taint in node.taints)
