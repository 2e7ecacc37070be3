"""The ledger in DynamoDB: one table for all clusters of account and Region.

`cluster#<name>` / `lease`, `intent#<plan>#<group>`, `done#<plan>#<group>`,
`slot#<plan>#<group>#<n>`, `timer#<node uid>#<kind>`, `heartbeat`, `plan#<id>`, `told`,
`memo#<name>`;
`instance#<id>` / `instance`;
`account#<region>` / `bucket#<api>`, `offering#<type>#<zone>#<capacity type>`. Every row has
`version`, `schema` and `expires_at`.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from shared.aws.ledger import rows
from shared.aws.ledger.account import Account
from shared.aws.ledger.intents import Intents
from shared.aws.ledger.memos import Memos
from shared.aws.ledger.slots import Slots
from shared.aws.ledger.table import ALWAYS, Condition, LedgerTable, say_nothing
from shared.aws.session import Session
from shared.model.ec2.launches import Trial
from shared.ports import Clock


class DynamoLedger(Intents, Slots, Account, Memos):
    """Implements shared.ports.Ledger on one DynamoDB table."""

    def __init__(  # noqa: PLR0913 - all but two have a default and are named
        self,
        session: Session,
        *,
        table: str,
        clock: Clock,
        lease_span: timedelta = timedelta(seconds=50),
        burst: int = 5,
        per_second: float = 2.0,
        notice: Callable[[str], None] = say_nothing,
    ) -> None:
        """Prepare; nothing is called yet.

        Args:
            session: Of the Region whose offerings and request tokens are shared.
            table: Name of the table.
            clock: What rows expire by.
            lease_span: Length of a lease, longer than any outside call with its time-out.
            burst: Request tokens a bucket holds.
            per_second: Its refill.
            notice: Receives one line for each row that Dovetail did not write.
        """
        self._table = LedgerTable(session, table, clock, notice)
        self._region = session.region
        self._lease_span = lease_span
        self._burst = burst
        self._per_second = per_second

    def note_timer(self, cluster: str, node_uid: str, kind: str, at: datetime) -> None:
        """Write down that a timer of that kind runs for a node and was last seen at `at`."""
        fields = {
            "node_uid": node_uid,
            "kind": str(kind),
            "at": rows.millis(at),
            "expires_at": rows.seconds(at + rows.KEEP_TIMER),
        }
        self._table.write(rows.timer_key(cluster, node_uid, kind), fields, _newer(at))

    def timers(self, cluster: str) -> Mapping[tuple[str, str], datetime]:
        """Return when each timer, by (node uid, kind), was last seen."""
        pk = rows.cluster_key(cluster, rows.TIMER).pk
        return dict(
            self._table.read(
                pk,
                rows.TIMER,
                lambda row: ((row["node_uid"], row["kind"]), rows.moment(row["at"])),
            )
        )

    def drop_timer(self, cluster: str, node_uid: str, kind: str) -> None:
        """Remove a timer's row."""
        self._table.remove(rows.timer_key(cluster, node_uid, kind))

    def note_heartbeat(self, cluster: str, at: datetime) -> None:
        """Write down when the cluster's forwarder last spoke."""
        fields = {"at": rows.millis(at), "expires_at": rows.seconds(at + rows.KEEP_HEARTBEAT)}
        self._table.write(rows.cluster_key(cluster, rows.HEARTBEAT), fields, _newer(at))

    def heartbeat(self, cluster: str) -> datetime | None:
        """Return when the cluster's forwarder last spoke, None when it never did."""
        row = self._table.get(rows.cluster_key(cluster, rows.HEARTBEAT))
        return rows.moment(row["at"]) if row is not None and "at" in row else None

    def note_trial(self, cluster: str, trial: Trial) -> None:
        """Record the pods that could not use a plan's machines; kept an hour from the launch."""
        fields = {
            **rows.trial_row(trial),
            "expires_at": rows.seconds(trial.launched_at + rows.KEEP_TRIAL),
        }
        self._table.write(rows.trial_key(cluster, trial.plan_id), fields, ALWAYS)

    def trials(self, cluster: str, now: datetime) -> tuple[Trial, ...]:
        """Return the plans of the last hour whose machines are of no use, sorted by plan."""
        pk = rows.cluster_key(cluster, rows.TRIAL).pk
        found = self._table.read(pk, rows.TRIAL, rows.trial_of)
        young = [trial for trial in found if now < trial.launched_at + rows.KEEP_TRIAL]
        return tuple(sorted(young, key=lambda entry: entry.plan_id))

    def recently_recorded(self, cluster: str, now: datetime) -> frozenset[str]:
        """Return the marks of what the cluster was told in the last minutes."""
        return self._told(cluster, now)[1]

    def note_recorded(self, cluster: str, marks: frozenset[str], now: datetime) -> None:
        """Add marks of what the cluster was told; after some minutes all are forgotten."""
        since, known = self._told(cluster, now)
        kept = sorted(known | marks)[: rows.MOST_DIGESTS]
        fields = {
            "marks": "".join(kept),
            "since": rows.millis(since),
            "expires_at": rows.seconds(since + rows.KEEP_TOLD),
        }
        self._table.write(rows.cluster_key(cluster, rows.TOLD), fields, ALWAYS)

    def forget_recorded(self, cluster: str) -> None:
        """Forget what the cluster was told: all of it may be told again."""
        self._table.remove(rows.cluster_key(cluster, rows.TOLD))

    def _told(self, cluster: str, now: datetime) -> tuple[datetime, frozenset[str]]:
        """Return since when marks are gathered, and the marks."""
        row = self._table.get(rows.cluster_key(cluster, rows.TOLD))
        if row is None or now >= rows.moment(row.get("since", 0)) + rows.KEEP_TOLD:
            return now, frozenset()
        return rows.moment(row["since"]), rows.digests_of(str(row.get("marks", "")))


def _newer(at: datetime) -> Condition:
    """Return the condition that nothing later is written: late messages change nothing."""
    return Condition(
        text="(attribute_not_exists(pk) OR #at <= :at)",
        names=("at",),
        values={"at": rows.millis(at)},
    )
