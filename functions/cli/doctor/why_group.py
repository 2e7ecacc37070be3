"""Why the pods of a workload wait, what an owner of nodes does, and how a whole cluster is."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from functions.cli.doctor.doctor import Doctor
from functions.cli.doctor.why import Answer, Why
from functions.cli.plan.svg_plan import workload_of
from shared.model.dollars_and_counts import counted, first_names, hourly
from shared.model.errors import NotFoundError
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.provisioner import InvalidProvisioner, Provisioner
from shared.model.values import replace
from shared.nodes.brakes.hold import hold_of, rivals_of
from shared.nodes.events.node_events import price_of
from shared.ports import ClusterPorts

# The kinds of workloads that are asked about, by the word for them; pods of a Deployment belong to
# its ReplicaSets, those of a CronJob to its Jobs.
WORKLOADS: Final = {
    "daemonset": "DaemonSet",
    "deployment": "ReplicaSet",
    "job": "Job",
    "replicaset": "ReplicaSet",
    "statefulset": "StatefulSet",
}
OWNERS: Final = {"nodepool": "NodePool", "provisioner": "Provisioner"}
_NAMED: Final = 3
_MOST_EVENTS: Final = 20


class WhyGroup:
    """Answers about many pods or nodes of one cluster; changes nothing.

    Args:
        why: Answers about one pod.
    """

    def __init__(self, ports: ClusterPorts, why: Why) -> None:
        self._ports = ports
        self._why = why

    def workload(self, kind: str, namespace: str, name: str) -> Answer:
        """Return where the pods of a workload are, and what the first that waits waits for.

        Raises:
            NotFoundError: If it has no pods.
        """
        cluster = self._ports.cluster
        found = [
            pod
            for pod in (*cluster.pending_pods(), *cluster.bound_pods())
            if belongs(pod, kind, f"{namespace}/{name}")
        ]
        if not found:
            raise NotFoundError(
                f"{kind}/{namespace}/{name}: has no pods in cluster {cluster.name}; "
                f"kubectl -n {namespace} describe {kind} {name} says why none was made"
            )
        waiting = sorted((pod for pod in found if not pod.node_name), key=lambda pod: pod.key)
        nodes = Counter(pod.node_name for pod in found if pod.node_name)
        on_nodes = f"{counted(nodes.total(), 'pod')} on {counted(len(nodes), 'node')}"
        state = f"has {on_nodes}, {counted(len(waiting), 'pod')} without a node"
        answer = Answer()
        if waiting:
            first = waiting[0]
            answer = self._why.pod(first.namespace, first.name)
            answer = replace(
                answer, current=(f"pod/{first.key} {answer.state}: what follows is about it",)
            )
        shown = "Deployment" if kind == "deployment" else WORKLOADS[kind]
        events = cluster.events(shown, namespace, name)[-_MOST_EVENTS:]
        subject = f"{kind}/{namespace}/{name}"
        return replace(answer, subject=subject, state=state, events=answer.events or events)

    def owner(self, kind: str, name: str) -> Answer:
        """Return what a NodePool or Provisioner has, and what keeps it from launching nodes.

        Raises:
            NotFoundError: If there is none of that kind and name.
        """
        cluster = self._ports.cluster
        usable, invalid = cluster.provisioners()
        of_kind: Iterable[Provisioner | InvalidProvisioner] = (*usable, *invalid)
        shown = OWNERS[kind]
        owner = next((one for one in of_kind if one.kind == shown and one.name == name), None)
        if owner is None:
            raise NotFoundError(
                f"{kind}/{name}: no such {shown} in cluster {cluster.name}; kubectl get {kind}s"
            )
        events = cluster.events(shown, "", name)[-_MOST_EVENTS:]
        helps = (f"kubectl describe {kind} {name}",)
        if isinstance(owner, InvalidProvisioner):
            return Answer(
                subject=f"{kind}/{name}",
                state="launches nothing: it cannot be used",
                waits_for=owner.reasons,
                helps=helps,
                events=events,
            )
        nodes = [node for node in cluster.nodes() if owner.owns(node)]
        held = [self._held(), "it is paused" if owner.paused else ""]
        return Answer(
            subject=f"{kind}/{name}",
            state=f"has {_fleet(nodes)}",
            current=tuple(_phases(nodes)),
            waits_for=tuple(filter(None, held)),
            helps=helps,
            events=events,
        )

    def cluster(self) -> Answer:
        """Return what waits, what goes, what is refused, what it costs and what to do."""
        cluster = self._ports.cluster
        waiting = [pod for pod in cluster.pending_pods() if pod.is_provisionable]
        ours = [node for node in cluster.nodes() if node.is_ours]
        going = [node for node in ours if node.deletion_at is not None]
        _, invalid = cluster.provisioners()
        findings = Doctor(self._ports).findings()
        names = first_names(sorted({workload_of(pod) for pod in waiting}), _NAMED)
        refused = [f"{one.kind.value} {one.name}: {one.reasons[0]}" for one in invalid]
        held = self._held()
        return Answer(
            subject=f"cluster/{cluster.name}",
            state=f"has {_fleet(ours)} of Dovetail's",
            current=(
                f"waits: {counted(len(waiting), 'pod')}{f' of {names}' if waiting else ''}",
                f"goes: {_fleet(going)}",
                f"refused: {'; '.join(refused) or 'nothing'}",
                f"costs: {hourly(sum(map(price_of, ours)))}",
            ),
            waits_for=(held,) if held else (),
            helps=tuple(f"{one.kind} {one.subject}: {one.text}" for one in findings[:_NAMED])
            or ("nothing is to be done: dovetail doctor finds nothing",),
        )

    def _held(self) -> str:
        hold = hold_of(self._ports, rivals_of(self._ports))
        return "" if hold is None else hold.text


def belongs(pod: Pod, kind: str, key: str) -> bool:
    """Return whether a pod is of the workload of this kind, in lower case, and namespace/name."""
    owner = pod.owner
    if owner is None or owner.kind != WORKLOADS[kind]:
        return False
    if kind == "deployment":
        return workload_of(pod) == key
    return f"{pod.namespace}/{owner.name}" == key


def _fleet(nodes: Sequence[Node]) -> str:
    return f"{counted(len(nodes), 'node')}, {hourly(sum(map(price_of, nodes)))}"


def _phases(nodes: Sequence[Node]) -> Iterator[str]:
    """Yield how many nodes are starting, going and NotReady, as far as there are any."""
    starting = [node.name for node in nodes if not node.was_initialized]
    going = [node.name for node in nodes if node.deletion_at is not None]
    sick = [node.name for node in nodes if node.was_initialized and node.ready is not True]
    for names, what in ((starting, "starting"), (going, "going"), (sick, "NotReady")):
        if names:
            yield f"{counted(len(names), 'node')} {what}: {first_names(sorted(names), _NAMED)}"
