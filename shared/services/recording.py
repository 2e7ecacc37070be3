"""Writing decisions down, so that each can be explained and replayed."""

import dataclasses
import gzip
import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from shared.model.plan import Plan
from shared.model.snapshot import ClusterSnapshot
from shared.ports import Decisions


def record(decisions: Decisions, plan_id: str, snapshot: ClusterSnapshot, plan: Plan) -> str:
    """Write snapshot and plan as one compressed JSON document; return its key.

    The model holds neither environment nor commands of pods, so the document cannot either.
    """
    document = {
        "version": 1,
        "plan_id": plan_id,
        "snapshot": to_plain(snapshot),
        "plan": to_plain(plan),
    }
    text = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
    key = f"decisions/{snapshot.cluster}/{snapshot.taken_at:%Y-%m-%d}/{plan_id}.json.gz"
    # mtime 0: the same decision is the same bytes.
    decisions.put(key, gzip.compress(text, mtime=0))
    return key


def to_plain(value: Any) -> Any:
    """Return a frozen value as plain JSON: dataclasses as objects, sets sorted, times as text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if isinstance(value, Mapping):
        return {str(key): to_plain(one) for key, one in value.items()}
    if isinstance(value, (frozenset, set)):
        return sorted((to_plain(one) for one in value), key=json.dumps)
    if isinstance(value, (tuple, list)):
        return [to_plain(one) for one in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return value
