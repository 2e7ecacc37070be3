"""Why pods and nodes of a cluster are as they are that something other than Dovetail scales."""

from collections.abc import Callable, Iterable
from typing import Final

from functions.cli.doctor.node_outlook import node_outlook
from functions.cli.doctor.why import Answer
from functions.cli.doctor.why_group import belongs
from functions.cli.plan.explanation import explanation
from functions.cli.plan.plan_remarks import pod_remarks
from functions.cli.plan.reading.running_cluster import RunningCluster
from shared.model.dollars_and_counts import counted, first_names, hourly
from shared.model.errors import NotFoundError
from shared.model.kubernetes.pods import Pod
from shared.model.values import replace
from shared.planning.decide import decide
from shared.ports import PastEvent
from shared.provisioning.savings.inventory import FilledNode, by_pool, cost, inventory

_NAMED: Final = 3
_MOST_EVENTS: Final = 20
_OTHER: Final = (
    "whatever scales this cluster: Dovetail is not attached to it, and says what it would plan"
)

# Returns the Events of an object of a kind, namespace and name, oldest first.
EventsOf = Callable[[str, str, str], tuple[PastEvent, ...]]


class WhyUnattached:
    """Answers from what a running cluster shows, without ledger and AWS; changes nothing."""

    def __init__(
        self,
        running: RunningCluster,
        events_of: EventsOf,
        context: str = "",
        options: str = "",
    ) -> None:
        """Initialize.

        Args:
            context: Name of the cluster where nothing in it says one.
            options: Those of kubectl and of `dovetail` that name the cluster, each after a blank.
        """
        self._name = running.name or context or "of this kubeconfig"
        self._kubectl = f"kubectl{options}"
        self._report = f"dovetail report{options} says what the nodes could cost"
        self._snapshot = running.snapshot
        self._budgets = running.budgets
        self._nodes = {node.name: node for node in inventory(running.snapshot)}
        self._events_of = events_of

    def pod(self, namespace: str, name: str) -> Answer:
        """Return where a pod is, or what Dovetail would plan for it.

        Raises:
            NotFoundError: If there is no such pod.
        """
        pod = next((one for one in self._pods if one.key == f"{namespace}/{name}"), None)
        if pod is None:
            raise self._not_found(f"pod/{namespace}/{name}", f"-n {namespace} get pods")
        return replace(
            self._of_pod(pod),
            subject=f"pod/{pod.key}",
            events=self._events("Pod", namespace, name),
        )

    def node(self, name: str) -> Answer:
        """Return what a node is, costs and carries.

        Raises:
            NotFoundError: If there is no such node.
        """
        node = self._nodes.get(name)
        if node is None:
            raise self._not_found(f"node/{name}", "get nodes")
        names = first_names(sorted(pod.key for pod in node.pods), _NAMED)
        return Answer(
            subject=f"node/{name}",
            state=f"is {_described(node)}",
            current=(f"{counted(len(node.pods), 'pod')}{f': {names}' if names else ''}",),
            outlook=tuple(
                line
                for one in self._snapshot.nodes
                if one.name == name
                for line in node_outlook(self._snapshot, self._budgets, one)
            ),
            helps=(self._report,),
            events=self._events("Node", "", name),
        )

    def workload(self, kind: str, namespace: str, name: str) -> Answer:
        """Return where the pods of a workload are, and what Dovetail would plan for the first.

        Raises:
            NotFoundError: If it has no pods.
        """
        key = f"{namespace}/{name}"
        found = [pod for pod in self._pods if belongs(pod, kind, key)]
        if not found:
            raise self._not_found(f"{kind}/{key}", f"-n {namespace} get pods")
        waiting = [pod for pod in found if not pod.node_name]
        nodes = {pod.node_name for pod in found if pod.node_name}
        placed = f"{counted(len(found) - len(waiting), 'pod')} on {counted(len(nodes), 'node')}"
        answer = self.pod(waiting[0].namespace, waiting[0].name) if waiting else Answer()
        return replace(
            answer,
            subject=f"{kind}/{key}",
            state=f"has {placed}, {counted(len(waiting), 'pod')} without a node",
        )

    def owner(self, kind: str, name: str) -> Answer:
        """Return what the nodes of a NodePool or Provisioner are and cost.

        Raises:
            NotFoundError: If it has no node and is not declared.
        """
        nodes = [node for node in self._nodes.values() if node.pool.name == name]
        declared = any(owner.name == name for owner in self._snapshot.provisioners)
        if not nodes and not declared:
            raise self._not_found(f"{kind}/{name}", f"get {kind}s")
        return Answer(
            subject=f"{kind}/{name}",
            state=f"has {_fleet(nodes)}",
            current=tuple(_described(node) for node in nodes[:_MOST_EVENTS]),
            helps=(self._report,),
        )

    def cluster(self) -> Answer:
        """Return what the cluster has by pool, what it costs and what waits."""
        waiting = [pod for pod in self._snapshot.pending if pod.is_provisionable]
        names = first_names(sorted(pod.key for pod in waiting), _NAMED)
        pools = by_pool(self._nodes.values())
        return Answer(
            subject=f"cluster {self._name}",
            state=f"has {_fleet(self._nodes.values())}",
            current=(
                *(f"{pool}: {_fleet(nodes)}" for pool, nodes in pools.items()),
                f"{counted(len(waiting), 'pod')} waiting{f': {names}' if names else ''}",
            ),
            helps=(self._report,),
        )

    @property
    def _pods(self) -> tuple[Pod, ...]:
        return (*self._snapshot.pending, *self._snapshot.bound)

    def _of_pod(self, pod: Pod) -> Answer:
        if pod.node_name:
            node = self._nodes.get(pod.node_name)
            on = (_described(node),) if node is not None else ()
            return Answer(state=f"is {pod.phase} on node {pod.node_name}", current=on)
        if reason := pod.why_not_provisionable:
            return Answer(state=reason)
        plan = decide(self._snapshot)
        lines = (
            *explanation(self._snapshot, plan, pod),
            *pod_remarks(self._snapshot, plan, pod),
        )
        return Answer(state="is pending", outlook=lines, waits_for=(_OTHER,))

    def _events(self, kind: str, namespace: str, name: str) -> tuple[PastEvent, ...]:
        return self._events_of(kind, namespace, name)[-_MOST_EVENTS:]

    def _not_found(self, subject: str, lists: str) -> NotFoundError:
        return NotFoundError(
            f"{subject}: not in cluster {self._name}; {self._kubectl} {lists} lists what there is"
        )


def _described(node: FilledNode) -> str:
    price = node.price_micros_per_hour
    known = "price not known" if price is None else hourly(price)
    return f"{node.instance_type} {node.capacity_type.value} in {node.zone} of {node.pool}, {known}"


def _fleet(nodes: Iterable[FilledNode]) -> str:
    listed = tuple(nodes)
    return f"{counted(len(listed), 'node')}, {hourly(cost(listed))}"
