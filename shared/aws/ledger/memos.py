"""Memos: small documents that a cluster's services leave each other."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from shared.aws.ledger import rows
from shared.aws.ledger.table import ALWAYS, Condition, LedgerTable, absent
from shared.model.memo import Memo


class Memos:
    """The part of the ledger that holds memos, each as one text of JSON."""

    _table: LedgerTable

    def memo(self, cluster: str, name: str) -> Memo:
        """Return what stands under a name; of version 0, and empty, when nothing does."""
        row = self._table.get(_key(cluster, name))
        return Memo(name=name) if row is None else _memo(row)

    def memos(self, cluster: str, prefix: str) -> tuple[Memo, ...]:
        """Return the memos whose name has the prefix, sorted by name."""
        key = _key(cluster, prefix)
        found = self._table.read(key.pk, key.sk, _memo)
        return tuple(sorted(found, key=lambda entry: entry.name))

    def change_memo(self, cluster: str, memo: Memo, until: datetime) -> bool:
        """Write a memo if it is still as it was read, and keep it until then.

        Returns:
            False if it was changed since it was read.
        """
        unchanged = absent(self._table.now())
        if memo.version:
            unchanged = Condition(
                text="#version = :version", names=("version",), values={"version": memo.version}
            )
        return self._table.write(_key(cluster, memo.name), _fields(memo, until), unchanged).done

    def put_memo(self, cluster: str, memo: Memo, until: datetime) -> None:
        """Write a memo, whatever stands there, and keep it until then."""
        self._table.write(_key(cluster, memo.name), _fields(memo, until), ALWAYS)

    def drop_memo(self, cluster: str, name: str) -> None:
        """Remove a memo; gone already is fine."""
        self._table.remove(_key(cluster, name))


def _key(cluster: str, name: str) -> rows.Key:
    return rows.cluster_key(cluster, f"{rows.MEMO}{name}")


def _fields(memo: Memo, until: datetime) -> dict[str, Any]:
    text = json.dumps(memo.value, sort_keys=True, separators=(",", ":"))
    return {"name": memo.name, "value": text, "expires_at": rows.seconds(until)}


def _memo(row: Mapping[str, Any]) -> Memo:
    return Memo(name=row["name"], value=json.loads(row["value"]), version=row["version"])
