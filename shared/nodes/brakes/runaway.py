"""Runaway: instances are launched repeatedly for the same pods and never become usable.

An agent that taints every node, an image whose nodes never join, a kubelet that rejects the pod:
each leaves the same pods pending and causes another launch. Launches stop after two failed trials
in an hour. Only evidence counts, because a healthy workload may well shrink and grow three times an
hour.

Failures are counted for the controller that replaces a pod. Nothing replaces a bare pod or a pod of
a Job: the next one has another UID. Such pods are counted together if they are in one namespace and
may use the same nodes, whatever amounts they request, and with a higher limit for the namespace as
a whole. A namespace may run thousands of them, and of as many instances some fail by chance:
failures no longer count once pods like these run on a node that was launched within the hour.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from shared.model import labels as keys
from shared.model.digest import digest, digests_of
from shared.model.ec2.launches import PodRef, Trial
from shared.model.errors import ConflictError
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import ControllerRef, Pod, Scheduling
from shared.model.kubernetes.taints import Effect, Taint, first_untolerated
from shared.model.kubernetes.volumes import is_attachable
from shared.model.note import Note
from shared.model.provisioner import Provisioner
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.planning.rules.labels_and_taints import node_terms
from shared.ports import NodeLedger, NodePorts

SPAN: Final = timedelta(hours=1)
MOST_TRIALS: Final = 2
# For all pods of a namespace that no controller replaces, together.
_MOST_OF_NAMESPACE: Final = 10
_TRIAL: Final = "trial#"
_LAUNCHED_FOR: Final = "launched-for#"
# Timers of a plan's nodes that write at the same moment; a timer that fails is tried again.
_MOST_WRITES: Final = 10
# A note holds less than 400 KB.
_MOST_SUBJECTS: Final = 25_000


def subjects_of(pod: Pod) -> dict[str, int]:
    """Return the subjects for which failed launches for a pod are counted, with their limits.

    The keys are short digests; a value is the largest number of failed plans in one hour.
    """
    controller = _controller_of(pod)
    if controller is not None:
        return {digest(controller.uid): MOST_TRIALS}
    return {
        digest("alike", pod.namespace, *_node_demands(pod.scheduling)): MOST_TRIALS,
        digest("namespace", pod.namespace): _MOST_OF_NAMESPACE,
    }


def all_subjects(pods: Iterable[Pod]) -> frozenset[str]:
    """Return the subjects of pods."""
    return frozenset(subject for pod in pods for subject in subjects_of(pod))


def _controller_of(pod: Pod) -> ControllerRef | None:
    """Return the controller that replaces a pod, None for a bare pod and a pod of a Job.

    Pods of a Job finish, so another pod of the same owner does not indicate a failure.
    """
    return None if pod.is_of_job else pod.owner


def _node_demands(scheduling: Scheduling) -> list[str]:
    """Return which nodes a pod may use: labels, tolerations, names of resources, each sorted.

    Volumes are left out: their zones are known only while a plan is made.
    """
    terms = [" ".join(wanted.describe() for wanted in term) for term in node_terms(scheduling)]
    tolerations = [
        f"{borne.key} {borne.operator} {borne.value} {borne.effect}"
        for borne in scheduling.tolerations
    ]
    resources = [name for name in scheduling.requests if not is_attachable(name)]
    return [*sorted(terms), "", *sorted(tolerations), "", *sorted(resources)]


def recent_trials(ledger: NodeLedger, cluster: str, now: datetime) -> tuple[Trial, ...]:
    """Return the plans of the last hour whose nodes are unusable, sorted by plan."""
    found = map(_trial_in, ledger.notes(cluster, _TRIAL))
    return tuple(trial for trial in found if now < trial.launched_at + SPAN)


def save_failure(ledger: NodeLedger, cluster: str, trial: Trial) -> Trial:
    """Save that nodes of a plan were unusable for these subjects; return all that is known of it.

    It is kept for an hour from the launch. Subjects beyond 25,000 are left out.

    Raises:
        ConflictError: If others change the same plan again and again.
    """

    def with_failure(before: Trial | None) -> Trial:
        if before is None:
            return trial
        return replace(
            trial,
            subjects=trial.subjects | before.subjects,
            provisioners=trial.provisioners | before.provisioners,
        )

    return _changed(ledger, cluster, trial.plan_id, with_failure) or trial


def clear_failures(
    ledger: NodeLedger, cluster: str, useful: frozenset[str], known: Sequence[Trial]
) -> tuple[Trial, ...]:
    """Remove the failures of subjects that have usable nodes; return the trials that are left.

    Raises:
        ConflictError: If others change the same plan again and again.
    """

    def without_useful(before: Trial | None) -> Trial | None:
        return before and replace(before, subjects=before.subjects - useful)

    left = []
    for trial in known:
        cleared = replace(trial, subjects=trial.subjects - useful)
        if cleared != trial:
            cleared = _changed(ledger, cluster, trial.plan_id, without_useful) or cleared
        left.append(cleared)
    return tuple(left)


def _changed(
    ledger: NodeLedger, cluster: str, plan_id: str, change: Callable[[Trial | None], Trial | None]
) -> Trial | None:
    """Change what is known of a plan, from what it is at that moment.

    The nodes of a plan are given up side by side, each by a timer of its own.
    """
    name = f"{_TRIAL}{plan_id}"
    for _ in range(_MOST_WRITES):
        note = ledger.note(cluster, name)
        before = _trial_in(note) if note.version else None
        after = change(before)
        if after is None or after == before or not (before or after.subjects):
            return after
        value = {
            "launched_at": after.launched_at.isoformat(),
            "subjects": "".join(sorted(after.subjects)[:_MOST_SUBJECTS]),
            "provisioners": sorted(after.provisioners),
        }
        if ledger.change_note(cluster, replace(note, value=value), after.launched_at + SPAN):
            return after
    raise ConflictError(f"the failures of plan {plan_id} were changed by others meanwhile")


def _trial_in(note: Note) -> Trial:
    return Trial(
        plan_id=note.name.removeprefix(_TRIAL),
        launched_at=datetime.fromisoformat(note.value["launched_at"]),
        subjects=digests_of(note.value["subjects"]),
        provisioners=frozenset(note.value["provisioners"]),
    )


def newly_failed(trial: Trial, known: Sequence[Trial]) -> int:
    """Return for how many subjects it is new that the nodes of this plan are unusable."""
    before = (other_trial.subjects for other_trial in known if other_trial.plan_id == trial.plan_id)
    return len(trial.subjects.difference(*before))


def save_launched_for(ports: NodePorts, instance_id: str, pods: Iterable[PodRef]) -> None:
    """Save which of the pods that an instance was launched for are left to kube-scheduler.

    They are kept for an hour: an older node is not a trial.
    """
    digests = sorted(digest(pod.uid) for pod in pods)[:_MOST_SUBJECTS]
    note = Note(name=f"{_LAUNCHED_FOR}{instance_id}", value={"pods": "".join(digests)})
    ports.ledger.put_note(ports.cluster.name, note, ports.clock.now() + SPAN)


def served_subjects(snapshot: ClusterSnapshot) -> frozenset[str]:
    """Return the subjects of pods without a controller that run on nodes of the last hour."""
    young = {node.name for node in snapshot.nodes if _is_young_and_ready(node, snapshot.taken_at)}
    return all_subjects(
        pod
        for pod in (snapshot.bound if young else ())
        if pod.node_name in young and pod.phase == "Running" and not pod.is_terminating
        if _controller_of(pod) is None
    )


def unusable_trials(
    snapshot: ClusterSnapshot, pods_on: Callable[[str], Sequence[Pod]]
) -> tuple[Trial, ...]:
    """Return the plans whose nodes are empty and unusable for pending pods.

    A node is unusable for pods that do not tolerate a taint added to it, and for pods of a subject
    of which its kubelet has rejected a pod.

    Args:
        pods_on: Returns the pods of a node, including finished ones.
    """
    waiting = [pod for pod in snapshot.pending if pod.is_provisionable]
    young = [node for node in snapshot.nodes if _is_young_and_ready(node, snapshot.taken_at)]
    if not (waiting and young):
        return ()
    own = {provisioner.name: _own_taints(provisioner) for provisioner in snapshot.provisioners}
    occupied = {
        pod.node_name
        for pod in snapshot.bound
        if pod.counts_for_emptiness and not pod.is_terminating
    }
    found = (
        _trial(node, own.get(node.provisioner, ()), waiting, pods_on(node.name))
        for node in young
        if node.name not in occupied
    )
    return tuple(trial for trial in found if trial.subjects)


def save_useless_trial(ports: NodePorts, node: Node, owner: Provisioner) -> None:
    """Save the failure of an empty node that is about to be removed while pods cannot use it.

    Later plans cannot find this out, because the node is gone. It was unusable for the pods that it
    was launched for and that are still pending, whatever kept kube-scheduler from binding them to
    it.

    Args:
        node: The node, cordoned for its removal or not.
    """
    node, now = _without_cordon(node), ports.clock.now()
    if not _is_young(node, now):
        return
    cluster, ledger, name = ports.cluster, ports.ledger, ports.cluster.name
    note = ledger.note(name, f"{_LAUNCHED_FOR}{node.instance_id}")
    waiting = [pod for pod in cluster.pending_pods() if pod.is_provisionable]
    own, launched_for = _own_taints(owner), digests_of(note.value.get("pods", ""))
    trial = _trial(node, own, waiting, cluster.pods_on(node.name), launched_for)
    if trial.subjects:
        save_failure(ledger, name, trial)


def _trial(
    node: Node,
    own: Sequence[Taint],
    waiting: Sequence[Pod],
    pods: Iterable[Pod],
    launched_for: frozenset[str] = frozenset(),
) -> Trial:
    """Return the trial of a node, with the subjects of the pending pods that cannot use it."""
    # A node whose kubelet has stopped has taints of Kubernetes, which prove nothing.
    strange = _unexpected_taints(node, own) if node.is_open else ()
    subjects = all_subjects(
        pod
        for pod in waiting
        if first_untolerated(strange, pod.scheduling.tolerations) is not None
        or digest(pod.uid) in launched_for
    )
    if rejected := all_subjects(pod for pod in pods if pod.phase == "Failed"):
        subjects |= rejected & all_subjects(waiting)
    assert node.created_at is not None
    return Trial(
        plan_id=plan_of(node),
        launched_at=node.created_at,
        subjects=subjects,
        provisioners=frozenset({node.provisioner}),
    )


def runaways(pending: Iterable[Pod], trials: Sequence[Trial]) -> dict[str, datetime]:
    """Return the pending pods, by UID, for which nothing is launched, and until when."""
    failed: dict[str, list[datetime]] = {}
    for trial in trials:
        for subject in trial.subjects:
            failed.setdefault(subject, []).append(trial.launched_at)
    found: dict[str, datetime] = {}
    for pod in pending if failed else ():
        for subject, most in subjects_of(pod).items() if pod.is_provisionable else ():
            times = sorted(failed.get(subject, ()))
            if len(times) >= most:
                until = times[-most] + SPAN
                found[pod.uid] = max(until, found.get(pod.uid, until))
    return found


def provisioners_of(pod: Pod, trials: Iterable[Trial]) -> frozenset[str]:
    """Return the Provisioners whose nodes were unusable for a pod."""
    subjects = subjects_of(pod).keys()
    return frozenset(
        name for trial in trials if subjects & trial.subjects for name in trial.provisioners
    )


def workload_of(pod: Pod) -> str:
    """Return the name of a pod's controller, or of the pod if it has none, for messages."""
    if pod.owner is None:
        return f"pod {pod.key}"
    return f"{pod.owner.kind} {pod.namespace}/{pod.owner.name}"


def plan_of(node: Node) -> str:
    """Return the plan that launched a node, the node's name if no slot is annotated."""
    return node.annotations.get(keys.SLOT, "").partition("/")[0] or node.name


def _is_young_and_ready(node: Node, now: datetime) -> bool:
    return _is_young(node, now) and node.is_open


def _is_young(node: Node, now: datetime) -> bool:
    """Return whether a node of Dovetail is under an hour old, not cordoned, not being deleted."""
    if node.created_at is None or now - node.created_at >= SPAN:
        return False
    return node.is_ours and node.deletion_at is None and not node.unschedulable


def _own_taints(owner: Provisioner) -> tuple[Taint, ...]:
    return (*owner.taints, *owner.startup_taints)


def _without_cordon(node: Node) -> Node:
    """Return a node as it was before Dovetail cordoned it to remove it."""
    if keys.REMOVAL_REASON not in node.annotations:
        return node
    taints = tuple(taint for taint in node.taints if taint.key != keys.UNSCHEDULABLE_TAINT)
    return replace(node, unschedulable=False, taints=taints)


def _unexpected_taints(node: Node, own: Sequence[Taint]) -> tuple[Taint, ...]:
    """Return the taints that neither Dovetail nor Kubernetes sets on a starting node."""
    ours = {(taint.key, taint.effect) for taint in own}
    return tuple(
        taint
        for taint in node.taints
        if not keys.is_ephemeral(taint.key)
        and (taint.key, taint.effect) not in ours
        and taint.effect != Effect.PREFER_NO_SCHEDULE
    )
