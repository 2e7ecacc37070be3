"""Pods for which machines are bought again and again, and never become usable.

An agent that taints every node, an image that never joins, a kubelet that rejects the pod: each
ends with the same pods pending again and another machine. Two of them in an hour are enough.
Only evidence counts, for a workload may well shrink and grow three times an hour.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from shared.model import labels as keys
from shared.model.launch import Trial
from shared.model.nodes import Node
from shared.model.pods import Pod
from shared.model.snapshot import ClusterSnapshot
from shared.model.taints import Effect, Taint, first_untolerated
from shared.ports import Ledger

SPAN: Final = timedelta(hours=1)
MOST_TRIALS: Final = 2
_DIGEST: Final = 12
# Their pods end by themselves, so a new pod of theirs is no sign of trouble.
_ENDING: Final = frozenset({"Job"})


def digest(*parts: str) -> str:
    """Return a short name for texts, of 48 bits."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:_DIGEST]


def subject_of(pod: Pod) -> str:
    """Return for whom a machine is bought: the controller that replaces the pod, or the pod."""
    if pod.owner is None or pod.owner.kind in _ENDING:
        return digest(pod.uid)
    return digest(pod.owner.uid)


def note_failure(
    ledger: Ledger, cluster: str, trial: Trial, known: Sequence[Trial]
) -> tuple[Trial, ...]:
    """Write down that what a plan bought is of no use to some; return all that is known then."""
    others = tuple(one for one in known if one.plan_id != trial.plan_id)
    before = [one for one in known if one.plan_id == trial.plan_id]
    subjects = trial.subjects.union(*(one.subjects for one in before))
    provisioners = trial.provisioners.union(*(known.provisioners for known in before))
    whole = Trial(
        plan_id=trial.plan_id,
        launched_at=trial.launched_at,
        subjects=subjects,
        provisioners=provisioners,
    )
    if whole.subjects and whole not in before:
        ledger.note_trial(cluster, whole)
    return (*others, whole)


def newly_failed(trial: Trial, known: Sequence[Trial]) -> int:
    """Return for how many it was not known yet that what this plan bought is of no use to them."""
    before = (one.subjects for one in known if one.plan_id == trial.plan_id)
    return len(trial.subjects.difference(*before))


def unusable(
    snapshot: ClusterSnapshot, pods_on: Callable[[str], Sequence[Pod]]
) -> tuple[Trial, ...]:
    """Return the plans whose nodes stand empty and are of no use to pods that wait.

    A node is of no use to pods that do not tolerate what somebody has tainted it with, nor to
    those a pod of which its kubelet has rejected.

    Args:
        pods_on: Returns the pods of a node, those that have ended, too.
    """
    waiting = [pod for pod in snapshot.pending if pod.is_provisionable]
    known = {one.name: (*one.taints, *one.startup_taints) for one in snapshot.provisioners}
    occupied = {
        pod.node_name
        for pod in snapshot.bound
        if pod.counts_for_emptiness and not pod.is_terminating
    }
    found = []
    for node in snapshot.nodes if waiting else ():
        if node.name in occupied or not _is_young_and_ready(node, snapshot.taken_at):
            continue
        strange = _strange(node, known.get(node.provisioner, ()))
        subjects = {
            subject_of(pod)
            for pod in waiting
            if first_untolerated(strange, pod.scheduling.tolerations) is not None
        }
        rejected = {subject_of(pod) for pod in pods_on(node.name) if pod.phase == "Failed"}
        subjects |= rejected & {subject_of(pod) for pod in waiting}
        if subjects:
            born = node.created_at or snapshot.taken_at
            found.append(
                Trial(
                    plan_id=plan_of(node),
                    launched_at=born,
                    subjects=frozenset(subjects),
                    provisioners=frozenset({node.provisioner}),
                )
            )
    return tuple(found)


def runaways(pending: Iterable[Pod], trials: Sequence[Trial]) -> dict[str, datetime]:
    """Return the waiting pods no machine is bought for, by uid, and until when."""
    failed: dict[str, list[datetime]] = {}
    for one in trials:
        for subject in one.subjects:
            failed.setdefault(subject, []).append(one.launched_at)
    found = {}
    for pod in pending if failed else ():
        times = sorted(failed.get(subject_of(pod), ()))
        if pod.is_provisionable and len(times) >= MOST_TRIALS:
            found[pod.uid] = times[-MOST_TRIALS] + SPAN
    return found


def provisioners_of(pod: Pod, trials: Iterable[Trial]) -> frozenset[str]:
    """Return the Provisioners whose machines were of no use to a pod."""
    subject = subject_of(pod)
    return frozenset(name for one in trials if subject in one.subjects for name in one.provisioners)


def workload_of(pod: Pod) -> str:
    """Return the controller that replaces a pod, or the pod, for people."""
    if pod.owner is None:
        return f"pod {pod.key}"
    return f"{pod.owner.kind} {pod.namespace}/{pod.owner.name}"


def plan_of(node: Node) -> str:
    """Return the plan a node of ours was bought by, its own name when it does not say."""
    return node.annotations.get(keys.SLOT, "").partition("/")[0] or node.name


def _is_young_and_ready(node: Node, now: datetime) -> bool:
    stays = node.is_ours and node.deletion_at is None and not node.unschedulable
    young = node.created_at is not None and now - node.created_at < SPAN
    return stays and young and node.is_open


def _strange(node: Node, own: Sequence[Taint]) -> tuple[Taint, ...]:
    """Return taints that neither we nor Kubernetes put on a node that starts."""
    ours = {(one.key, one.effect) for one in own}
    return tuple(
        one
        for one in node.taints
        if one.key not in keys.EPHEMERAL_TAINTS
        and (one.key, one.effect) not in ours
        and one.effect != Effect.PREFER_NO_SCHEDULE
    )
