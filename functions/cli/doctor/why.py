"""Why a pod waits or a node is as it is: read from cluster, ledger and recorded decisions."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from functions.cli.doctor.node_outlook import node_outlook
from functions.cli.plan.decision_documents import MissingBaseError
from functions.cli.plan.explanation import explanation
from functions.cli.plan.plan_remarks import pod_remarks
from functions.cli.plan.recorded_decision import load_decision
from shared.disruption.drift import drift_of
from shared.disruption.emptiness import empty_since, stays_empty
from shared.disruption.expiration import lifetime_of
from shared.disruption.outdated import stays_outdated
from shared.disruption.unhealthy_outcome import unhealthy_outcome
from shared.model import labels as keys
from shared.model.dialect import BY_KIND
from shared.model.dollars_and_counts import counted
from shared.model.ec2.launches import PodRef, Slot, slot_of
from shared.model.errors import NotFoundError, PermanentError
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.plan import Plan
from shared.model.provisioner import Provisioner, owner_word
from shared.model.scheduled_changes import scheduled_change
from shared.model.values import replace
from shared.nodes.brakes.hold import hold_of, rivals_of
from shared.nodes.brakes.runaway import MOST_TRIALS, recent_trials, runaways
from shared.nodes.events.node_events import (
    CONSOLE,
    cause_of,
    node_instance_text,
    slot_instance_text,
)
from shared.nodes.launch.current_images import current_images
from shared.nodes.node_waits import (
    JOIN,
    device_plugin_problem,
    missing_devices,
    waiting_for,
)
from shared.planning.decide import decide
from shared.ports import ClusterPorts, PastEvent
from shared.provisioning.disruption_loop import with_claims
from shared.snapshot.gather import gather
from shared.snapshot.refusals import read_refusals

_MOST_EVENTS: Final = 20
_MINUTE: Final = timedelta(minutes=1)
_HOUR: Final = timedelta(hours=1)
_DISRUPTION_CONDITIONS: Final = (
    "budgets, pods and other changes let it: an Event DisruptionBlocked says what does not"
)
_LOG_HINT: Final = "look for 'Unable to register node' in its kubelet's log"


class Answer(Struct, frozen=True, kw_only=True):
    """What is known about one pod or node, as lines for people.

    Attributes:
        subject: As in `pod/default/web-0`.
        state: Its current state, one line.
        current: What there is of a group, and its price.
        history: What Dovetail did and decided.
        outlook: What would be planned for a pod as things are; what will become of a node.
        waits_for: What it waits for; empty when it waits for nothing.
        helps: What to look at or to run.
        events: Its Events in the cluster, oldest first.
    """

    subject: str = ""
    state: str = ""
    current: tuple[str, ...] = ()
    history: tuple[str, ...] = ()
    outlook: tuple[str, ...] = ()
    waits_for: tuple[str, ...] = ()
    helps: tuple[str, ...] = ()
    events: tuple[PastEvent, ...] = ()


class Why:
    """Answers for one cluster; changes nothing.

    Args:
        drift: Whether drifted nodes are replaced for Provisioners that do not say.
    """

    def __init__(self, ports: ClusterPorts, *, drift: bool = False) -> None:
        self._ports = ports
        self._drift = drift
        self._name = ports.cluster.name

    def pod(self, namespace: str, name: str) -> Answer:
        """Return why a pod is where it is, or what it waits for.

        Raises:
            NotFoundError: If there is no such pod.
            RetryableError: If the cluster or AWS cannot be read now.
        """
        pod = self._ports.cluster.pod(namespace, name)
        if pod is None:
            raise NotFoundError(
                f"pod/{namespace}/{name}: no such pod in cluster {self._name}; "
                f"kubectl -n {namespace} get pods lists those there are"
            )
        answer = self._of_pod(pod)
        return replace(
            answer,
            subject=f"pod/{pod.key}",
            events=self._ports.cluster.events("Pod", namespace, name)[-_MOST_EVENTS:],
        )

    def node(self, name: str) -> Answer:
        """Return why a node exists, what it waits for, and why it is removed.

        Raises:
            NotFoundError: If there is no such Node, and no Event about one.
            RetryableError: If the cluster or AWS cannot be read now.
        """
        cluster = self._ports.cluster
        events = cluster.events("Node", "", name)[-_MOST_EVENTS:]
        node = cluster.node(name)
        if node is not None:
            answer = self._of_node(node)
        elif events:
            answer = Answer(state="the Node is deleted; its Events say why")
        else:
            raise NotFoundError(
                f"node/{name}: no such Node in cluster {self._name}; "
                "kubectl get nodes lists those there are"
            )
        return replace(answer, subject=f"node/{name}", events=events)

    # --- a pod

    def _of_pod(self, pod: Pod) -> Answer:
        slots = self._ports.ledger.slots(self._name)
        if pod.node_name:
            return self._bound(pod, slots)
        if reason := pod.why_not_provisionable:
            return Answer(state=reason)
        state = f"is pending{_for(self._now - pod.created_at) if pod.created_at else ''}"
        held = self._held(pod)
        if held is not None:
            return replace(held, state=state)
        ref = PodRef(namespace=pod.namespace, name=pod.name, uid=pod.uid)
        slot = next((slot for slot in slots if ref in slot.pods), None)
        return replace(
            self._predicted(pod) if slot is None else self._nominated(pod, slot), state=state
        )

    def _bound(self, pod: Pod, slots: Sequence[Slot]) -> Answer:
        node = self._ports.cluster.node(pod.node_name)
        state = f"is {pod.phase} on node {pod.node_name}"
        if node is None:
            return Answer(state=state, waits_for=("its deletion: the Node does not exist",))
        slot = slot_of(slots, node.instance_id)
        on_node = self._start(node, slot) if node.is_ours and not node.was_initialized else Answer()
        return replace(on_node, state=state, history=self._decided(pod, node))

    def _held(self, pod: Pod) -> Answer | None:
        """Return which brake holds a pod back, None for none."""
        hold = hold_of(self._ports, rivals_of(self._ports))
        if hold is not None:
            release = f"aws ssm get-parameter --name /dovetail/clusters/{self._name}/brakes"
            return Answer(waits_for=(hold.text,), helps=(release,))
        until = runaways((pod,), recent_trials(self._ports.ledger, self._name, self._now))
        if pod.uid not in until:
            return None
        text = (
            f"{until[pod.uid]:%H:%M} UTC: nodes of {MOST_TRIALS} launches of the last hour never "
            "joined or never became usable for it, and none is launched before"
        )
        helps = (
            f"the EC2 console of such an instance: {_LOG_HINT}; {CONSOLE} <instance-id>",
            "a taint that nothing removes, or pods that the kubelet refused: kubectl describe node",
            "pods of a new ReplicaSet are tried at once: kubectl rollout restart",
        )
        return Answer(waits_for=(text,), helps=helps)

    def _nominated(self, pod: Pod, slot: Slot) -> Answer:
        """Return what a pod's nominated node waits for."""
        node = self._ports.cluster.node(slot.node_name) if slot.node_name else None
        age = _ago(self._now - slot.launched_at)
        launched = f"it is nominated to instance {slot_instance_text(slot)}, launched{age}"
        history = (launched, *self._explained(pod, slot.plan_id, slot.launched_at))
        if node is None:
            waits = ("its Node to be made: EC2 does not show the instance's name yet",)
            return Answer(history=history, waits_for=waits)
        start = self._start(node, slot)
        return replace(start, history=(f"it is nominated to node {node.name}", *history))

    def _predicted(self, pod: Pod) -> Answer:
        """Return what would be decided for a pod that nothing is planned for."""
        gathered = gather(self._ports, "why")
        plan = decide(gathered.snapshot)
        lines = (
            *explanation(gathered.snapshot, plan, pod),
            *pod_remarks(gathered.snapshot, plan, pod),
        )
        ref = PodRef(namespace=pod.namespace, name=pod.name, uid=pod.uid)
        refused = next((pod_left for pod_left in plan.unschedulable if pod_left.pod == ref), None)
        if refused is not None and refused.later:
            waits = ("a later plan: planning for it exceeds the work that one plan may do",)
            helps = ("use fewer affinity terms, preferences and rules between pods",)
            return Answer(outlook=lines, waits_for=waits, helps=helps)
        if refused is not None:
            waits = ("a change: it fits no node that could be launched",)
            owners = owner_word(gathered.snapshot.provisioners)
            helps = (f"change the pod or a {owners} as the reasons say",)
            return Answer(outlook=lines, waits_for=waits, helps=helps)
        if pod.uid in gathered.snapshot.promised:
            waits = ("an unfinished launch that it is part of",)
        else:
            refused_by_ec2 = self._refused_by_ec2(gathered.snapshot.provisioners, plan, ref)
            waits = (refused_by_ec2 or "the next plan, which is made within a minute",)
        helps = (f"dovetail doctor --cluster {self._name}",)
        return Answer(outlook=lines, waits_for=waits, helps=helps)

    def _refused_by_ec2(self, owners: Iterable[Provisioner], plan: Plan, pod: PodRef) -> str:
        """Return why EC2 refuses the nodes of the owner that a pod would go to, empty if not."""
        names = {planned.provisioner for planned in plan.nodes if pod in planned.pods}
        refusals = read_refusals(self._ports)
        return next(
            (
                f"{owner.kind} {owner.name}: {reason}"
                for owner in owners
                if owner.name in names and (reason := refusals.reason_for(self._ports, owner))
            ),
            "",
        )

    def _decided(self, pod: Pod, node: Node) -> tuple[str, ...]:
        plan_id = _plan_of(node)
        found = self._explained(pod, plan_id, node.created_at) if plan_id else ()
        return found or ("it was bound by kube-scheduler, or no decision about it is kept",)

    def _explained(self, pod: Pod, plan_id: str, at: datetime | None) -> tuple[str, ...]:
        """Return why a recorded decision gave a pod its node; empty when that is not recorded."""
        when = at or self._now
        for day in (when, when - timedelta(days=1)):
            key = f"decisions/{self._name}/{day:%Y-%m-%d}/{plan_id}.json.gz"
            try:
                documents = self._ports.decisions
                decision = load_decision(documents.get(key), documents.get)
            except MissingBaseError as error:
                return (f"decision {key}: {error}",)
            except PermanentError:
                continue
            decided = next(
                (other_pod for other_pod in decision.snapshot.pending if other_pod.uid == pod.uid),
                None,
            )
            if decided is None:
                return ()
            return (f"decision {key}:", *explanation(decision.snapshot, decision.plan, decided))
        return ()

    # --- a node

    def _of_node(self, node: Node) -> Answer:
        if not node.is_ours:
            text = "was not launched by Dovetail, which counts its room and leaves it alone"
            return Answer(state=text)
        slot = slot_of(self._ports.ledger.slots(self._name), node.instance_id)
        age = _ago(self._now - node.created_at) if node.created_at else ""
        by = f" by plan {_plan_of(node)}" if _plan_of(node) else ""
        owner = f"{_kind_of(node)} {node.provisioner}"
        launched = f"{node_instance_text(node)} was launched{age}{by} for {owner}"
        if node.deletion_at is not None:
            answer = self._going(node)
        elif node.was_initialized and node.ready is not True:
            help_ = f"kubectl describe node {node.name}"
            waits = ("its kubelet to be Ready again",)
            pods = self._ports.cluster.pods_on(node.name)
            warning = (f"unless it comes back, {unhealthy_outcome(node, self._owner(node), pods)}",)
            answer = Answer(state="is NotReady", outlook=warning, waits_for=waits, helps=(help_,))
        elif not node.was_initialized:
            answer = replace(self._start(node, slot), state="starts")
        else:
            answer = self._running(node)
        return replace(answer, history=(launched, *answer.history))

    def _start(self, node: Node, slot: Slot | None) -> Answer:
        """Return what a starting node waits for, and where to look."""
        cluster = self._ports.cluster
        nominated = [
            pod
            for ref in (slot.pods if slot is not None else ())
            if (pod := cluster.pod(ref.namespace, ref.name)) is not None and pod.uid == ref.uid
        ]
        missing = waiting_for(node, self._owner(node), nominated)
        history = (f"{counted(len(nominated), 'pod')} nominated to it",) if nominated else ()
        if not missing:
            waits = ("the bind function, which is woken within a minute",)
            return Answer(history=history, waits_for=waits)
        if missing == JOIN:
            helps: tuple[str, ...] = (f"{_LOG_HINT}: {CONSOLE} {node.instance_id}",)
        else:
            resources = sorted({name for pod in nominated for name in missing_devices(node, pod)})
            daemonsets = cluster.daemonsets() if resources else ()
            troubles = [device_plugin_problem(node, name, daemonsets) for name in resources]
            helps = (*filter(None, troubles), f"kubectl describe node {node.name}")
        return Answer(history=history, waits_for=(missing,), helps=helps)

    def _going(self, node: Node) -> Answer:
        """Return what the termination of a node waits for."""
        blocked = node.annotations.get(keys.DRAIN_BLOCKED)
        deadline = node.annotations.get(keys.DRAIN_DEADLINE)
        pods = [pod for pod in self._ports.cluster.pods_on(node.name) if pod.counts_for_emptiness]
        waits = [f"its drain, which is held {blocked}"] if blocked else []
        if pods and not blocked:
            waits.append(f"{counted(len(pods), 'pod')} to leave")
        if not pods:
            waits.append(f"instance {node.instance_id} to be terminated")
        helps = ["kubectl get poddisruptionbudgets --all-namespaces"] if blocked else []
        if deadline:
            waits.append(f"at the latest {deadline}: then pods are deleted")
        return Answer(
            state=f"is cordoned, drained and terminated: {cause_of(node)}",
            waits_for=tuple(waits),
            helps=tuple(helps),
        )

    def _running(self, node: Node) -> Answer:
        """Return what keeps a node that accepts pods, or may remove it."""
        pods = [pod for pod in self._ports.cluster.pods_on(node.name) if pod.counts_for_emptiness]
        owner = self._owner(node)
        notes = [*self._prospects(node, owner), *(self._outlook(node) if pods and owner else ())]
        state = f"takes pods, and has {counted(len(pods), 'pod')}"
        if node.unschedulable:
            state = f"is cordoned, and has {counted(len(pods), 'pod')}"
        return Answer(state=state, outlook=tuple(notes))

    def _prospects(self, node: Node, owner: Provisioner | None) -> Iterable[str]:
        """Yield what will happen to a node, or what prevents it."""
        written: Mapping[str, str] = node.annotations
        since, ttl = empty_since(node), owner.ttl_after_empty if owner is not None else None
        if since is not None:
            end = ""
            if ttl is not None:
                due = since + stays_empty(ttl)
                end = f", and is removed at {due:%H:%M:%S} UTC unless a pod comes"
            yield f"is empty since {since:%H:%M:%S} UTC{end}"
        if keys.DISRUPTION_BLOCKED in written:
            yield f"is kept, though it should go: {written[keys.DISRUPTION_BLOCKED]}"
        if keys.REPLACES in written:
            yield f"replaces {written[keys.REPLACES]}, and is kept until those are gone"
        if keys.REBALANCE_RECOMMENDED in written:
            yield f"EC2 expects to interrupt it, since {written[keys.REBALANCE_RECOMMENDED]}"
        if (change := scheduled_change(node)) is not None:
            yield change.text
        if owner is not None and (outdated := self._outdated(node, owner)):
            yield outdated
        if owner is None:
            yield f"its {_kind_of(node)} {node.provisioner} is gone: nothing removes it by choice"
        elif (life := lifetime_of(node, owner)) is not None and node.created_at is not None:
            yield f"expires at {node.created_at + life:%Y-%m-%d %H:%M} UTC"

    def _outdated(self, node: Node, owner: Provisioner) -> str:
        """Return how a node differs from what its owner asks for, and why it is still kept."""
        types = self._ports.catalog.instance_types()
        images = current_images(self._ports, [owner], [node], types)
        booted, current = (
            found.get(node.instance_id, "") for found in (images.of_instance, images.current)
        )
        how = drift_of(node, owner, booted, current)
        if not how:
            return ""
        waits = "" if drift_of(node, owner) else images.waiting_reasons.get(node.instance_id, "")
        why = stays_outdated(owner, otherwise=self._drift) or waits
        why = why or f"it is replaced as soon as {_DISRUPTION_CONDITIONS}"
        return f"is outdated: {how}; {why}"

    def _outlook(self, node: Node) -> Iterable[str]:
        """Yield how full a node is, what keeps it from being consolidated and what that saves."""
        gathered = gather(self._ports, "why", read_all=True)
        snapshot = with_claims(self._ports, gathered.snapshot)
        yield from node_outlook(snapshot, self._ports.cluster.disruption_budgets(), node)

    def _owner(self, node: Node) -> Provisioner | None:
        provisioners, _ = self._ports.cluster.provisioners()
        return next((found for found in provisioners if found.owns(node)), None)

    @property
    def _now(self) -> datetime:
        return self._ports.clock.now()


def _kind_of(node: Node) -> str:
    return next(kind for kind, found in BY_KIND.items() if found.owner_label in node.labels)


def _plan_of(node: Node) -> str:
    return node.annotations.get(keys.SLOT, "").partition("/")[0]


def _for(span: timedelta) -> str:
    return f" for {_span(span)}"


def _ago(span: timedelta) -> str:
    return f" {_span(span)} ago"


def _span(span: timedelta) -> str:
    if span < _MINUTE:
        return f"{int(span.total_seconds())} s"
    if span < _HOUR:
        return f"{span // _MINUTE} min"
    return f"{span // _HOUR} h {span % _HOUR // _MINUTE} min"
