"""The launches of the last hour whose machines were of no use, each in a memo of the ledger."""

from datetime import datetime, timedelta
from typing import Final

from shared.model.digest import digests_of
from shared.model.ec2.launches import Trial
from shared.model.memo import Memo
from shared.ports import NodeLedger

_TRIAL: Final = "trial#"
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


def _trial(memo: Memo) -> Trial:
    return Trial(
        plan_id=memo.name.removeprefix(_TRIAL),
        launched_at=datetime.fromisoformat(memo.value["launched_at"]),
        subjects=digests_of(memo.value["subjects"]),
        provisioners=frozenset(memo.value["provisioners"]),
    )
