"""The ledger in DynamoDB: one table for all clusters of account and Region.

`cluster#<name>` / `lease`, `intent#<plan>#<group>`, `done#<plan>#<group>`,
`slot#<plan>#<group>#<n>`, `timer#<node uid>#<kind>`, `heartbeat`; `instance#<id>` / `instance`;
`account#<region>` / `bucket#<api>`, `offering#<type>#<zone>#<capacity type>`. Every row has
`version` and `expires_at`.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from shared.aws import ledger_rows as rows
from shared.aws.ledger_account import Account
from shared.aws.ledger_intents import Intents
from shared.aws.ledger_slots import Slots
from shared.aws.ledger_table import Condition, LedgerTable
from shared.aws.session import Session
from shared.ports import Clock


class DynamoLedger(Intents, Slots, Account):
    """Implements shared.ports.Ledger on one DynamoDB table."""

    def __init__(
        self,
        session: Session,
        *,
        table: str,
        clock: Clock,
        lease_span: timedelta = timedelta(seconds=50),
        burst: int = 5,
        per_second: float = 2.0,
    ) -> None:
        """Prepare; nothing is called yet.

        Args:
            session: Of the Region whose offerings and request tokens are shared.
            table: Name of the table.
            clock: What rows expire by.
            lease_span: Length of a lease, longer than any outside call with its time-out.
            burst: Request tokens a bucket holds.
            per_second: Its refill.
        """
        self._table = LedgerTable(session, table, clock)
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
        return {
            (row["node_uid"], row["kind"]): rows.moment(row["at"])
            for row in self._table.rows(pk, rows.TIMER)
        }

    def drop_timer(self, cluster: str, node_uid: str, kind: str) -> None:
        """Remove a timer's row."""
        self._table.remove(rows.timer_key(cluster, node_uid, kind))

    def note_heartbeat(self, cluster: str, at: datetime) -> None:
        """Write down when the cluster's forwarder last spoke."""
        fields = {"at": rows.millis(at), "expires_at": rows.seconds(at + rows.KEEP_HEARTBEAT)}
        self._table.write(rows.cluster_key(cluster, rows.HEARTBEAT), fields, _newer(at))


def _newer(at: datetime) -> Condition:
    """Return the condition that nothing later is written: late messages change nothing."""
    return Condition(
        text="(attribute_not_exists(pk) OR #at <= :at)",
        names=("at",),
        values={"at": rows.millis(at)},
    )
