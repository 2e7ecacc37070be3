"""What a ledger in memory keeps of trials, of what people were told, and of its own calls."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from shared.model.ec2.launches import Trial

_TRIAL_KEPT = timedelta(hours=1)
_TOLD_KEPT = timedelta(minutes=10)
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class Call(NamedTuple):
    """One call that changes something, and what it was about."""

    method: str
    subject: object


class FakeTold:
    """The part of the ledger about trials and Events; it knows every write and fails on demand."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._errors: dict[str, list[Exception]] = {}
        self.trial_values: dict[tuple[str, str], Trial] = {}
        self.marks: dict[str, tuple[datetime, frozenset[str]]] = {}

    def fail_next(self, method: str, *errors: Exception) -> None:
        """Make the next calls of a method raise these, one each, and change nothing."""
        self._errors.setdefault(method, []).extend(errors)

    def written(self, method: str) -> list[object]:
        """Return what the calls of a method were about, in order."""
        return [call.subject for call in self.calls if call.method == method]

    def note_trial(self, cluster: str, trial: Trial) -> None:
        self._called("note_trial", trial)
        self.trial_values[cluster, trial.plan_id] = trial

    def trials(self, cluster: str, now: datetime) -> tuple[Trial, ...]:
        found = [
            trial
            for (owner, _), trial in self.trial_values.items()
            if owner == cluster and now < trial.launched_at + _TRIAL_KEPT
        ]
        return tuple(sorted(found, key=lambda entry: entry.plan_id))

    def recently_recorded(self, cluster: str, now: datetime) -> frozenset[str]:
        since, marks = self.marks.get(cluster, (_LONG_AGO, frozenset()))
        return marks if now < since + _TOLD_KEPT else frozenset()

    def note_recorded(self, cluster: str, marks: frozenset[str], now: datetime) -> None:
        self._called("note_told", cluster)
        known = self.recently_recorded(cluster, now)
        since = self.marks[cluster][0] if known else now
        self.marks[cluster] = (since, known | marks)

    def forget_recorded(self, cluster: str) -> None:
        self._called("forget_told", cluster)
        self.marks.pop(cluster, None)

    def _called(self, method: str, subject: object) -> None:
        waiting = self._errors.get(method)
        if waiting:
            raise waiting.pop(0)
        self.calls.append(Call(method, subject))
