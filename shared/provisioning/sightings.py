"""What a look saw of nodes, and since when: left to the next one in a memo of the ledger.

Of each node it has a digest of the uid, the time in seconds, as eight hexadecimal digits, and what
was seen: with a digest for that, 33 bytes a node.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from shared.model.digest import digest
from shared.model.kubernetes.nodes import Node
from shared.model.memo import Memo
from shared.model.snapshot import ClusterSnapshot
from shared.ports import NodeLedger

_SEEN: Final = "seen"
_KEEP: Final = timedelta(days=30)
_TIME: Final = 8
_UID: Final = len(digest(""))
# A memo holds less than 400 KB: 11,800 nodes. What is left out is seen for the first time again.
_MOST_BYTES: Final = 390_000

# By node uid: what was seen, without a comma, and since when, as ISO time.
Sightings = Mapping[str, tuple[str, str]]


def sighted(
    ledger: NodeLedger,
    name: str,
    snapshot: ClusterSnapshot,
    see: Callable[[Sightings], Sightings],
) -> Sightings:
    """Return what is seen of the nodes of a snapshot now, and remember it.

    Args:
        name: Of the memo.
        see: Returns what is seen now, given what the look before saw.
    """
    memo = ledger.memo(snapshot.cluster, name)
    before = _read(str(memo.value.get(_SEEN, "")), snapshot.nodes)
    seen = see(before)
    if seen != before:
        written = Memo(name=name, value={_SEEN: _written(seen)}, version=memo.version)
        # A later writer has seen something newer.
        ledger.change_memo(snapshot.cluster, written, snapshot.taken_at + _KEEP)
    return seen


def _written(seen: Sightings) -> str:
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
