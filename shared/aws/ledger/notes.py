"""Notes: small documents through which a cluster's services share state."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from typing_extensions import override

from shared.aws.ledger import row_keys
from shared.aws.ledger.table import ALWAYS, LedgerTable
from shared.model.note import Note
from shared.ports import NodeLedger


class Notes(NodeLedger):
    """The part of the ledger that has notes, each as one JSON text."""

    _table: LedgerTable

    @override
    def note(self, cluster: str, name: str) -> Note:
        row = self._table.get(_key(cluster, name))
        return Note(name=name) if row is None else _note(row)

    @override
    def notes(self, cluster: str, prefix: str) -> tuple[Note, ...]:
        key = _key(cluster, prefix)
        found = self._table.read(key.pk, key.sk, _note)
        return tuple(sorted(found, key=lambda entry: entry.name))

    @override
    def change_note(self, cluster: str, note: Note, until: datetime) -> bool:
        unchanged = self._table.unchanged({"version": note.version} if note.version else None)
        return self._table.write(_key(cluster, note.name), _fields(note, until), unchanged).done

    @override
    def put_note(self, cluster: str, note: Note, until: datetime) -> None:
        self._table.write(_key(cluster, note.name), _fields(note, until), ALWAYS)

    @override
    def drop_note(self, cluster: str, name: str) -> None:
        self._table.remove(_key(cluster, name))


def _key(cluster: str, name: str) -> row_keys.Key:
    return row_keys.cluster_key(cluster, f"{row_keys.NOTE}{name}")


def _fields(note: Note, until: datetime) -> dict[str, Any]:
    text = json.dumps(note.value, sort_keys=True, separators=(",", ":"))
    return {"name": note.name, "value": text, "expires_at": row_keys.seconds(until)}


def _note(row: Mapping[str, Any]) -> Note:
    return Note(name=row["name"], value=json.loads(row["value"]), version=row["version"])
