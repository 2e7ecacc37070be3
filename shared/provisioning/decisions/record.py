"""Writes decisions, so that each can be explained and replayed."""

import gzip
import hashlib
from collections.abc import Mapping
from typing import Any, Final

from shared.model.codec import to_json, to_plain
from shared.model.plan import Plan
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from shared.ports import Decisions

# The versions of documents: with the whole snapshot, and with the changes since a base.
WHOLE: Final = 3
SINCE_BASE: Final = 4
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
    return encoded(WHOLE, plan_id, recorded_snapshot(snapshot), plan, settings, why)


def encoded(
    version: int,
    plan_id: str,
    snapshot: ClusterSnapshot | Mapping[str, Any],
    plan: Plan,
    settings: PackingSettings,
    why: Mapping[str, Any] | None,
    **more: str,
) -> bytes:
    """Return the document of a decision as canonical JSON.

    Args:
        version: The version of the snapshot's format.
        snapshot: The snapshot as it is recorded.
        more: Further fields.
    """
    document = {
        "version": version,
        "plan_id": plan_id,
        "snapshot": snapshot,
        "settings": settings,
        "plan": recorded_plan(plan),
        **({"change": dict(why)} if why else {}),
        **more,
    }
    return to_json(document)


def compressed(document: bytes) -> bytes:
    """Return the document as stored; without a timestamp, so equal documents stay equal."""
    return gzip.compress(document, compresslevel=_LEVEL, mtime=0)


def recorded_snapshot(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """Return a snapshot as it is recorded: SHA-256 and length in place of user data."""
    owners = tuple(
        replace(
            owner,
            template=replace(owner.template, user_data=hashed_user_data(owner.template.user_data)),
        )
        for owner in snapshot.provisioners
    )
    return replace(snapshot, provisioners=owners)


def hashed_user_data(text: str) -> str:
    """Return what decisions record of user data, into which users write secrets."""
    content = text.encode()
    return f"sha256:{hashlib.sha256(content).hexdigest()}, {len(content)} bytes" if text else ""


def recorded_plan(plan: Plan) -> dict[str, Any]:
    """Return a plan as it is recorded: whether its bound is close can be proved again."""
    plain: dict[str, Any] = to_plain(plan)
    return {name: value for name, value in plain.items() if name != "bound_is_close"}
