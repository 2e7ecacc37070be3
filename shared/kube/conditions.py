"""Writes conditions into a status; the conditions of Provisioners and NodePools."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from shared.manifests.raw_json import integer, mapping, mappings
from shared.model.dialect import BY_KIND, V1, OwnerKind
from shared.model.kubernetes.nodes import UNHEALTHY_AFTER
from shared.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, format_amount
from shared.ports import ConditionType, PoolStatus

_HEALTHY: Final = "NodeRegistrationHealthy"
_NODES_HEALTHY: Final = "NodesHealthy"
_MINUTES: Final = round(UNHEALTHY_AFTER.total_seconds() / 60)
# Resources that are 0 in the status of an owner without nodes.
_COUNTED: Final = (CPU, MEMORY, PODS, EPHEMERAL_STORAGE)
_MICROS: Final = 1_000_000
CONDITION_STATUS: Final = {True: "True", False: "False"}


def owner_conditions(
    raw: Mapping[str, Any],
    owner: OwnerKind,
    kind: ConditionType,
    said: Mapping[str, str],
    *,
    holds: bool,
    at: datetime,
) -> dict[str, Any] | None:
    """Return the status patch that sets a condition, None when nothing differs.

    With the condition that says whether nodes are launched for it, a NodePool also gets the
    conditions that Karpenter sets with it.

    Args:
        said: Reason and message.
        at: The current time: lastTransitionTime if the status changes.
    """
    if kind != ConditionType.ACTIVE:
        wanted = [condition(kind.value, CONDITION_STATUS[holds], **said)]
    else:
        wanted = [condition(BY_KIND[owner].ready_condition, CONDITION_STATUS[holds], **said)]
        wanted += _parts_of_ready(**said) if owner == V1.owner_kind else ()
    found = with_conditions(raw, wanted, at, generation=owner == V1.owner_kind)
    return None if found is None else status_patch(raw, {"conditions": found})


def _parts_of_ready(reason: str, message: str) -> list[dict[str, Any]]:
    """Return the conditions that Ready of a NodePool depends on, from the reason of Ready.

    Source: https://karpenter.sh/docs/concepts/nodepools/#status (2026-11).
    """
    reasons = V1.reasons
    if reason == reasons.invalid:
        return [
            condition("ValidationSucceeded", "False", reason, message),
            condition("NodeClassReady", "Unknown", "NodeClassReadinessUnknown", ""),
        ]
    ready = reason != reasons.template
    return [
        condition("ValidationSucceeded", "True", "ValidationSucceeded", ""),
        condition(
            "NodeClassReady",
            CONDITION_STATUS[ready],
            "NodeClassReady" if ready else reason,
            "" if ready else message,
        ),
    ]


def pool_status(
    raw: Mapping[str, Any], owner: OwnerKind, status: PoolStatus, *, at: datetime
) -> dict[str, Any] | None:
    """Return the status patch with the summary of an owner's nodes, None when nothing differs.

    Source: https://karpenter.sh/docs/concepts/nodepools/#status (2026-11).
    """
    counted = {**dict.fromkeys(_COUNTED, 0), **dict(status.resources.items)}
    resources = {name: format_amount(name, amount) for name, amount in sorted(counted.items())}
    resources["nodes"] = str(status.nodes)
    wanted: dict[str, Any] = {"nodes": status.nodes, "resources": resources}
    of_pool = owner == OwnerKind.NODE_POOL
    if not of_pool:
        wanted["dollarsPerHour"] = f"{status.price_micros_per_hour / _MICROS:.4f}"
    known = mapping(raw.get("status"))
    changed = {k: value for k, value in wanted.items() if known.get(k) != value}
    if "resources" in changed:
        # A merge patch keeps what it does not name.
        gone = mapping(known.get("resources")).keys() - resources.keys()
        changed["resources"] = {**resources, **dict.fromkeys(sorted(gone))}
    wanted_conditions = [*_health(raw, status), *([_registration(status)] if of_pool else [])]
    conditions = (
        with_conditions(raw, wanted_conditions, at, generation=of_pool)
        if wanted_conditions
        else None
    )
    if conditions is not None:
        changed["conditions"] = conditions
    return status_patch(raw, changed) if changed else None


def _health(raw: Mapping[str, Any], status: PoolStatus) -> list[dict[str, Any]]:
    """Return the condition whether all nodes of an owner are Ready; none if it was never set."""
    if status.unhealthy:
        text = f"NotReady for more than {_MINUTES} min: {status.unhealthy}; see their Events"
        return [condition(_NODES_HEALTHY, "False", "NodesNotReady", text)]
    known = mappings(mapping(raw.get("status")).get("conditions"))
    if any(entry.get("type") == _NODES_HEALTHY for entry in known):
        return [condition(_NODES_HEALTHY, "True", _NODES_HEALTHY, "")]
    return []


def _registration(status: PoolStatus) -> dict[str, Any]:
    if status.registers is None:
        return condition(_HEALTHY, "Unknown", "AwaitingRegistration", "no instance has joined yet")
    if status.registers:
        return condition(_HEALTHY, "True", _HEALTHY, "")
    text = "of its last four instances two or more did not join: see the Events of the NodePool"
    return condition(_HEALTHY, "False", "RegistrationFailed", text)


def condition(kind: str, status: str, reason: str, message: str) -> dict[str, Any]:
    """Return a condition, without its times."""
    return {"type": kind, "status": status, "reason": reason, "message": message}


def with_conditions(
    raw: Mapping[str, Any], wanted: Sequence[dict[str, Any]], at: datetime, *, generation: bool
) -> list[Mapping[str, Any]] | None:
    """Return all conditions with these among them, None when nothing differs.

    Args:
        generation: Whether conditions have an observedGeneration.
    """
    known = mappings(mapping(raw.get("status")).get("conditions"))
    observed = integer(mapping(raw.get("metadata")).get("generation"))
    about = {"observedGeneration": observed} if generation and observed is not None else {}
    found = {entry.get("type"): entry for entry in known}
    changed: list[Mapping[str, Any]] = []
    for new in ({**entry, **about} for entry in wanted):
        old = found.pop(new["type"], {})
        if all(old.get(key) == value for key, value in new.items()):
            changed.append(old)
            continue
        since = old.get("lastTransitionTime") if old.get("status") == new["status"] else None
        since = since or at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        changed.append({**new, "lastTransitionTime": since})
    if all(entry in known for entry in changed):
        return None
    return [*found.values(), *changed]


def status_patch(raw: Mapping[str, Any], status: Mapping[str, Any]) -> dict[str, Any]:
    """Return the patch that sets parts of the status of an object as it was read."""
    return {
        # A patch replaces whole lists: only if they have not changed since they were read.
        "metadata": {"resourceVersion": mapping(raw.get("metadata")).get("resourceVersion")},
        "status": dict(status),
    }
