"""Writing decisions down, so that each can be explained and replayed."""

import dataclasses
import gzip
import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from shared.model.ec2.instance_types import InstanceType
from shared.model.kubernetes.pods import Scheduling
from shared.model.plan import Plan
from shared.model.provisioner import HASHED
from shared.model.snapshot import ClusterSnapshot
from shared.packing.problem import PackingSettings
from shared.ports import Decisions

_PLAIN: Final = frozenset({str, int, bool, float, type(None)})
# What many objects and many decisions have in common: the types of the catalogue, and what the
# pods of a workload ask for. Made plain anew each time they took longer than a small decision.
_SHARED: Final = frozenset({InstanceType, Scheduling})
_MOST_SHARED: Final = 8192


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
        why: What the decision is for when it is about nodes instead of waiting pods.
    """
    key = f"decisions/{snapshot.cluster}/{snapshot.taken_at:%Y-%m-%d}/{plan_id}.json.gz"
    text = decision_document(plan_id, snapshot, plan, settings or PackingSettings(), why)
    decisions.put(key, compressed(text))
    return key


def decision_document(
    plan_id: str,
    snapshot: ClusterSnapshot,
    plan: Plan,
    settings: PackingSettings,
    why: Mapping[str, Any] | None = None,
) -> bytes:
    """Return a decision as canonical JSON: the same decision is the same bytes.

    The model holds neither environment nor commands of pods, so the document cannot either. Of
    user data it holds a hash.
    """
    document = {
        "version": 1,
        "plan_id": plan_id,
        "snapshot": to_plain(snapshot),
        "settings": to_plain(settings),
        "plan": to_plain(plan),
        **({"change": dict(why)} if why else {}),
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def compressed(document: bytes) -> bytes:
    """Return the document as it is kept; the time is left out, so equal stays equal."""
    return gzip.compress(document, mtime=0)


def to_plain(value: Any) -> Any:
    """Return a frozen value as plain JSON: dataclasses as objects, sets sorted, times as text.

    Fields marked `HASHED` become their SHA-256 and length.
    The result is to be read only: parts of it are kept for the next call.
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind in _SHARED:
        return _shared(value)
    if dataclasses.is_dataclass(kind):
        return _fields(value)
    if isinstance(value, Mapping):
        return {str(key): to_plain(entry) for key, entry in value.items()}
    if isinstance(value, (frozenset, set)):
        return sorted((to_plain(entry) for entry in value), key=json.dumps)
    if isinstance(value, (tuple, list)):
        return [to_plain(entry) for entry in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return value


@lru_cache(maxsize=_MOST_SHARED)
def _shared(value: Any) -> dict[str, Any]:
    return _fields(value)


def _fields(value: Any) -> dict[str, Any]:
    kind: Any = type(value)
    return {name: plain(getattr(value, name)) for name, plain in _readers(kind)}


@lru_cache(maxsize=256)
def _readers(kind: Any) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    """Return the names of a dataclass's fields, each with what makes its value plain."""
    return tuple(
        (field.name, _hashed if field.metadata == HASHED else to_plain)
        for field in dataclasses.fields(kind)
    )


def _hashed(text: str) -> str:
    content = text.encode()
    return f"sha256:{hashlib.sha256(content).hexdigest()}, {len(content)} bytes" if text else ""
