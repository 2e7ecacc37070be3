"""The launches of the last hour whose machines were of no use, each in a memo of the ledger."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from shared.model.digest import digest, digests_of
from shared.model.ec2.launches import PodRef, Trial
from shared.model.memo import Memo
from shared.ports import NodeLedger

_TRIAL: Final = "trial#"
_LAUNCHED_FOR: Final = "launched-for#"
_KEEP: Final = timedelta(hours=1)
# A memo holds less than 400 KB.
_MOST_SUBJECTS: Final = 25_000


def note_trial(ledger: NodeLedger, cluster: str, trial: Trial) -> None:
    """Record the pods that could not use a plan's machines; kept an hour from the launch.

    Of very many subjects some are left out.
    """
    value = {
        "launched_at": trial.launched_at.isoformat(),
        "subjects": "".join(sorted(trial.subjects)[:_MOST_SUBJECTS]),
        "provisioners": sorted(trial.provisioners),
    }
    memo = Memo(name=f"{_TRIAL}{trial.plan_id}", value=value)
    ledger.put_memo(cluster, memo, trial.launched_at + _KEEP)


def recent_trials(ledger: NodeLedger, cluster: str, now: datetime) -> tuple[Trial, ...]:
    """Return the plans of the last hour whose machines are of no use, sorted by plan."""
    found = map(_trial, ledger.memos(cluster, _TRIAL))
    return tuple(trial for trial in found if now < trial.launched_at + _KEEP)


def save_launched_for(
    ledger: NodeLedger, cluster: str, instance_id: str, pods: Iterable[PodRef], now: datetime
) -> None:
    """Save which of the pods that an instance was launched for are left to kube-scheduler.

    Kept an hour: an older node is no trial.
    """
    digests = sorted(digest(pod.uid) for pod in pods)[:_MOST_SUBJECTS]
    memo = Memo(name=f"{_LAUNCHED_FOR}{instance_id}", value={"pods": "".join(digests)})
    ledger.put_memo(cluster, memo, now + _KEEP)


def launched_for(ledger: NodeLedger, cluster: str, instance_id: str) -> frozenset[str]:
    """Return the digests of the uids of these pods; empty where none were left."""
    memo = ledger.memo(cluster, f"{_LAUNCHED_FOR}{instance_id}")
    return digests_of(memo.value.get("pods", ""))


def _trial(memo: Memo) -> Trial:
    return Trial(
        plan_id=memo.name.removeprefix(_TRIAL),
        launched_at=datetime.fromisoformat(memo.value["launched_at"]),
        subjects=digests_of(memo.value["subjects"]),
        provisioners=frozenset(memo.value["provisioners"]),
    )
