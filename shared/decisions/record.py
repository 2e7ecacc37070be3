"""Writes decisions, so that each can be explained and replayed."""

import dataclasses
import gzip
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from shared.model.ec2.instance_types import InstanceType
from shared.model.kubernetes.pods import Scheduling
from shared.model.plan import UNRECORDED, Plan
from shared.model.provisioner import HASHED
from shared.model.snapshot import ClusterSnapshot
from shared.packing.problem import PackingSettings
from shared.ports import Decisions

_PLAIN: Final = frozenset({str, int, bool, float, type(None)})
# Values that many objects and decisions share: the instance types of the catalog, and the
# scheduling of a workload's pods. Converting them each time would take longer than a small
# decision.
_SHARED: Final = frozenset({InstanceType, Scheduling})
_MOST_SHARED: Final = 8192
# The gzip level: higher levels take longer and save hardly anything.
_LEVEL: Final = 6


def record(
    decisions: Decisions,
    plan_id: str,
    snapshot: ClusterSnapshot,
    plan: Plan,
    settings: PackingSettings | None = None,
    why: Mapping[str, Any] | None = None,
) -> str:
    """Write snapshot, settings and plan as one compressed JSON document; return its key.

    Args:
        why: The reason of a decision that changes nodes; None if it is about pending pods.
    """
    key = decision_key(plan_id, snapshot)
    text = decision_document(plan_id, snapshot, plan, settings or PackingSettings(), why)
    decisions.put(key, compressed(text))
    return key


def decision_key(plan_id: str, snapshot: ClusterSnapshot) -> str:
    """Return the key under which the decision of a plan is stored."""
    return f"decisions/{snapshot.cluster}/{snapshot.taken_at:%Y-%m-%d}/{plan_id}.json.gz"


def decision_document(
    plan_id: str,
    snapshot: ClusterSnapshot,
    plan: Plan,
    settings: PackingSettings,
    why: Mapping[str, Any] | None = None,
) -> bytes:
    """Return a decision as canonical JSON: equal decisions have equal bytes.

    The model contains neither environment variables nor commands of pods, so the document cannot
    either. User data is replaced by a hash.
    """
    return encoded(1, plan_id, to_plain(snapshot), plan, settings, why)


def encoded(
    version: int,
    plan_id: str,
    snapshot: Mapping[str, Any],
    plan: Plan,
    settings: PackingSettings,
    why: Mapping[str, Any] | None,
    **more: str,
) -> bytes:
    """Return the document of a decision as canonical JSON.

    Args:
        version: The version of the snapshot's format.
        snapshot: The snapshot as plain JSON.
        more: Further fields.
    """
    document = {
        "version": version,
        "plan_id": plan_id,
        "snapshot": snapshot,
        "settings": to_plain(settings),
        "plan": to_plain(plan),
        **({"change": dict(why)} if why else {}),
        **more,
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def compressed(document: bytes) -> bytes:
    """Return the document as stored; without a timestamp, so equal documents stay equal."""
    return gzip.compress(document, compresslevel=_LEVEL, mtime=0)


def to_plain(value: Any) -> Any:
    """Convert a frozen value to plain JSON: dataclasses to objects, sets sorted, times to text.

    Fields marked `HASHED` become their SHA-256 and length, those marked `UNRECORDED` are left out.
    Callers must not change the result: parts of it are cached.
    """
    kind: Any = type(value)
    return value if kind in _PLAIN else _writer(kind)(value)


@lru_cache(maxsize=256)
def _writer(kind: Any) -> Callable[[Any], Any]:
    """Return the function that converts values of a type."""
    if kind in _SHARED:
        return _shared
    if dataclasses.is_dataclass(kind):
        return _fields
    found = (writer for kinds, writer in _WRITERS if issubclass(kind, kinds))
    return next(found, lambda value: value)


def _mapped(value: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key): to_plain(entry) for key, entry in value.items()}


def _sorted(value: Iterable[Any]) -> list[Any]:
    return sorted((to_plain(entry) for entry in value), key=json.dumps)


def _listed(value: Iterable[Any]) -> list[Any]:
    return [to_plain(entry) for entry in value]


_WRITERS: Final[tuple[tuple[Any, Callable[[Any], Any]], ...]] = (
    (Mapping, _mapped),
    ((frozenset, set), _sorted),
    ((tuple, list), _listed),
    (datetime, datetime.isoformat),
    (timedelta, timedelta.total_seconds),
)


@lru_cache(maxsize=_MOST_SHARED)
def _shared(value: Any) -> dict[str, Any]:
    return _fields(value)


def _fields(value: Any) -> dict[str, Any]:
    kind: Any = type(value)
    return {name: plain(getattr(value, name)) for name, plain in _readers(kind)}


@lru_cache(maxsize=256)
def _readers(kind: Any) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    """Return the field names of a dataclass, each with the function that converts its value."""
    return tuple(
        (field.name, _hashed if field.metadata == HASHED else to_plain)
        for field in dataclasses.fields(kind)
        if field.metadata != UNRECORDED
    )


def _hashed(text: str) -> str:
    content = text.encode()
    return f"sha256:{hashlib.sha256(content).hexdigest()}, {len(content)} bytes" if text else ""
