"""Decisions about large clusters: the changes since a base that many of them share.

The snapshot of a large cluster is nearly equal to that of the decision before. So a process writes
pods on nodes, nodes and instance types once an hour, as a base, and with each decision only the
changes since. The base is written before any decision names it, under the ID of its first plan, so
two processes never write the same base.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct

from shared.model.codec import to_json, to_plain
from shared.model.ec2.instance_types import InstanceType
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.plan import Plan
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from shared.ports import Decisions
from shared.provisioning.decisions.changes import Changes, changes
from shared.provisioning.decisions.record import (
    SINCE_BASE,
    compressed,
    decision_key,
    encoded,
    record,
    recorded_snapshot,
)

# Decisions with fewer nodes and pods on nodes have no base: one object costs less than two.
SMALLEST_WITH_BASE: Final = 1000
# How long decisions use a base; S3 keeps it for longer than any of them (infra: BASE_DAYS).
MAX_BASE_AGE: Final = timedelta(hours=1)
# If more than this share of a collection has changed, a new base is shorter in the long run.
_MOST_CHANGED: Final = 1 / 8
_FEW: Final = 64
# How many values are encoded and compressed at a time, so that the whole text of a base is never in
# memory.
_SLICE: Final = 1000
_LEVEL: Final = 6


class _Collection(Struct, frozen=True, kw_only=True):
    """A collection of the snapshot that is written in bases, sorted by `key`."""

    key: Callable[[Any], Any]
    same: Callable[[Any, Any], bool]


def _unchanged(was: Pod | Node, now: Pod | Node) -> bool:
    """Return whether only the resourceVersion differs, which a kubelet changes every five minutes.

    Plans do not depend on it.
    """
    return replace(was, resource_version=now.resource_version) == now


def _pod_key(pod: Pod) -> tuple[str, str]:
    return pod.key, pod.uid


def _name(value: Node | InstanceType) -> str:
    return value.name


COLLECTIONS: Final[Mapping[str, _Collection]] = {
    "bound": _Collection(key=_pod_key, same=_unchanged),
    "nodes": _Collection(key=_name, same=_unchanged),
    "instance_types": _Collection(key=_name, same=InstanceType.__eq__),
}


class _Base(Struct, frozen=True, kw_only=True):
    """A base that was written.

    Attributes:
        values: The values of each collection; unchanged ones are replaced by the newest objects.
    """

    key: str
    taken_at: datetime
    values: Mapping[str, list[Any]]

    def changes(self, snapshot: ClusterSnapshot) -> dict[str, Changes[Any]] | None:
        """Return what has changed since the base, None if a new base is due."""
        if not timedelta(0) <= snapshot.taken_at - self.taken_at < MAX_BASE_AGE:
            return None
        if snapshot.taken_at.date() != self.taken_at.date():
            # The decisions of a day are replayed with the bases of that day.
            return None
        found = {}
        for name, collection in COLLECTIONS.items():
            was = self.values[name]
            changed = changes(was, getattr(snapshot, name), collection.key, collection.same)
            if len(changed) > max(_FEW, len(was) * _MOST_CHANGED):
                return None
            found[name] = changed
        return found


class DecisionWriter:
    """Writes the decisions of a process; keeps the base that it last wrote for each cluster.

    Args:
        small: Clusters with fewer nodes and pods on nodes, in total, have no bases.
    """

    def __init__(self, small: int = SMALLEST_WITH_BASE) -> None:
        self._small = small
        self._bases: dict[str, _Base] = {}

    def write(
        self,
        decisions: Decisions,
        plan_id: str,
        snapshot: ClusterSnapshot,
        plan: Plan,
        settings: PackingSettings | None = None,
        why: Mapping[str, Any] | None = None,
    ) -> str:
        """Write snapshot, settings and plan; return the key.

        Args:
            why: The reason of a decision that changes nodes; None if it is about pending pods.
        """
        if len(snapshot.bound) + len(snapshot.nodes) < self._small:
            return record(decisions, plan_id, snapshot, plan, settings, why)
        base = self._bases.get(snapshot.cluster)
        changed = base.changes(snapshot) if base is not None else None
        if base is None or changed is None:
            self._bases.pop(snapshot.cluster, None)
            base = _write_base(decisions, plan_id, snapshot)
            self._bases[snapshot.cluster] = base
            changed = base.changes(snapshot) or {}
        rest = replace(snapshot, bound=(), nodes=(), instance_types=())
        seen = {
            **to_plain(recorded_snapshot(rest)),
            **{name: _plain(found) for name, found in changed.items()},
        }
        key = decision_key(plan_id, snapshot)
        packing = settings or PackingSettings()
        text = encoded(SINCE_BASE, plan_id, seen, plan, packing, why, base=base.key)
        decisions.put(key, compressed(text))
        return key


def _plain(found: Changes[Any]) -> dict[str, Any]:
    added = [[place, without_version(to_plain(value))] for place, value in found.added]
    return {"removed": list(found.removed), "added": added}


def without_version(plain: dict[str, Any]) -> dict[str, Any]:
    """Return an object without its resourceVersion: unchanged objects may have a newer one."""
    return {name: value for name, value in plain.items() if name != "resource_version"}


def _write_base(decisions: Decisions, plan_id: str, snapshot: ClusterSnapshot) -> _Base:
    key = f"bases/{snapshot.cluster}/{snapshot.taken_at:%Y-%m-%d}/{plan_id}.json.gz"
    values = {name: list(getattr(snapshot, name)) for name in COLLECTIONS}
    packer = zlib.compressobj(_LEVEL, wbits=31)
    packed = [packer.compress(piece) for piece in _pieces(values)]
    decisions.put(key, b"".join((*packed, packer.flush())))
    return _Base(key=key, taken_at=snapshot.taken_at, values=values)


def _pieces(values: Mapping[str, Sequence[Any]]) -> Iterator[bytes]:
    """Yield the text of a base in pieces."""
    yield f'{{"version":{SINCE_BASE}'.encode()
    for name, members in values.items():
        yield f',"{name}":['.encode()
        for start in range(0, len(members), _SLICE):
            piece = to_json(members[start : start + _SLICE])[1:-1]
            yield b"," + piece if start else piece
        yield b"]"
    yield b"}"
