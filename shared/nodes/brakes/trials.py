"""The launches of the last hour whose nodes were unusable, each in a note of the ledger."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from shared.model.digest import digest, digests_of
from shared.model.ec2.launches import PodRef, Trial
from shared.model.note import Note
from shared.ports import NodeLedger

_TRIAL: Final = "trial#"
_LAUNCHED_FOR: Final = "launched-for#"
_KEEP: Final = timedelta(hours=1)
# A note holds less than 400 KB.
_MOST_SUBJECTS: Final = 25_000


def save_trial(ledger: NodeLedger, cluster: str, trial: Trial) -> None:
    """Save the subjects that could not use a plan's nodes; kept for an hour from the launch.

    Subjects beyond 25,000 are left out.
    """
    value = {
        "launched_at": trial.launched_at.isoformat(),
        "subjects": "".join(sorted(trial.subjects)[:_MOST_SUBJECTS]),
        "provisioners": sorted(trial.provisioners),
    }
    note = Note(name=f"{_TRIAL}{trial.plan_id}", value=value)
    ledger.put_note(cluster, note, trial.launched_at + _KEEP)


def recent_trials(ledger: NodeLedger, cluster: str, now: datetime) -> tuple[Trial, ...]:
    """Return the plans of the last hour whose nodes are unusable, sorted by plan."""
    found = map(_trial, ledger.notes(cluster, _TRIAL))
    return tuple(trial for trial in found if now < trial.launched_at + _KEEP)


def save_launched_for(
    ledger: NodeLedger, cluster: str, instance_id: str, pods: Iterable[PodRef], now: datetime
) -> None:
    """Save which of the pods that an instance was launched for are left to kube-scheduler.

    They are kept for an hour: an older node is not a trial.
    """
    digests = sorted(digest(pod.uid) for pod in pods)[:_MOST_SUBJECTS]
    note = Note(name=f"{_LAUNCHED_FOR}{instance_id}", value={"pods": "".join(digests)})
    ledger.put_note(cluster, note, now + _KEEP)


def launched_for(ledger: NodeLedger, cluster: str, instance_id: str) -> frozenset[str]:
    """Return the digests of the UIDs of these pods, empty if none were left."""
    note = ledger.note(cluster, f"{_LAUNCHED_FOR}{instance_id}")
    return digests_of(note.value.get("pods", ""))


def _trial(note: Note) -> Trial:
    return Trial(
        plan_id=note.name.removeprefix(_TRIAL),
        launched_at=datetime.fromisoformat(note.value["launched_at"]),
        subjects=digests_of(note.value["subjects"]),
        provisioners=frozenset(note.value["provisioners"]),
    )
