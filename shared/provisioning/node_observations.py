"""What an evaluation observed of each node and since when, saved for the next in a note.

For each node, the note of the ledger has a digest of the UID, the time in seconds as eight
hexadecimal digits, and what was observed: 33 bytes a node if that is a digest.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from shared.model.digest import digest
from shared.model.kubernetes.nodes import Node
from shared.model.note import Note
from shared.model.snapshot import ClusterSnapshot
from shared.ports import NodeLedger

_OBSERVED: Final = "seen"
_KEEP: Final = timedelta(days=30)
_TIME: Final = 8
_UID: Final = len(digest(""))
# A note holds less than 400 KB: 11,800 nodes. A node that is left out counts as new the next time.
_MOST_BYTES: Final = 390_000

# By node UID: what was observed, without a comma, and since when, as ISO 8601 time.
NodeObservations = Mapping[str, tuple[str, str]]


def update_observations(
    ledger: NodeLedger,
    name: str,
    snapshot: ClusterSnapshot,
    observe: Callable[[NodeObservations], NodeObservations],
) -> NodeObservations:
    """Return what is observed of the nodes of a snapshot now, and save it.

    Args:
        name: The name of the note.
        observe: Returns the current observations, given those of the evaluation before.
    """
    note = ledger.note(snapshot.cluster, name)
    before = _read(str(note.value.get(_OBSERVED, "")), snapshot.nodes)
    seen = observe(before)
    if seen != before:
        written = Note(name=name, value={_OBSERVED: _written(seen)}, version=note.version)
        # If the write fails, a concurrent writer has saved something newer.
        ledger.change_note(snapshot.cluster, written, snapshot.taken_at + _KEEP)
    return seen


def _written(seen: NodeObservations) -> str:
    entries: list[str] = []
    left = _MOST_BYTES
    for uid, (what, since) in sorted(seen.items()):
        seconds = int(datetime.fromisoformat(since).timestamp())
        entries.append(f"{digest(uid)}{seconds:0{_TIME}x}{what}")
        left -= len(entries[-1]) + 1
        if left < 0:
            entries.pop()
            break
    return ",".join(entries)


def _read(text: str, nodes: Iterable[Node]) -> dict[str, tuple[str, str]]:
    known = {entry[:_UID]: entry[_UID:] for entry in text.split(",") if entry}
    entries = {node.uid: known.get(digest(node.uid), "") for node in nodes if known}
    return {uid: (entry[_TIME:], _since(entry[:_TIME])) for uid, entry in entries.items() if entry}


def _since(digits: str) -> str:
    return datetime.fromtimestamp(int(digits, 16), UTC).isoformat()
