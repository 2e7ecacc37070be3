"""Which nodes are no longer what their owner asks for, and why they stand: told on the owner."""

from collections.abc import Sequence
from typing import Final

from shared.disruption.drift import is_judged
from shared.disruption.selection import DisruptionInput, Look, drifted
from shared.model.kubernetes.nodes import Node
from shared.model.policy import Trigger
from shared.model.provisioner import Provisioner

# Reasons that one text gives, and nodes that it names for each.
_MOST: Final = 3


def outdated_stories(seen: DisruptionInput, found: Look) -> dict[str, str]:
    """Return a text about the outdated nodes of each owner that has any, by its name.

    Of NodePools also where these leave such nodes as they are.

    Args:
        found: What the look over them chose.
    """
    stories = {}
    for owner in seen.snapshot.provisioners:
        if not is_judged(owner, otherwise=seen.settings.drift):
            continue
        nodes = [node for node in seen.snapshot.nodes if node.is_ours and owner.owns(node)]
        reasons: dict[str, list[str]] = {}
        for node in nodes:
            if how := drifted(seen, node, owner):
                why = _why_it_stands(seen, found, node, owner)
                reasons.setdefault(f"{how} ({why})", []).append(node.name)
        if reasons:
            stories[owner.name] = _story(reasons, len(nodes))
    return stories


def stays_outdated(owner: Provisioner, *, otherwise: bool) -> str:
    """Return why no drifted node of an owner is replaced, empty where they are.

    Args:
        otherwise: Whether drift is acted on for Provisioners that do not say.
    """
    if owner.acts_on(Trigger.DRIFT, otherwise=otherwise):
        return ""
    said = f"{Trigger.DRIFT.annotation} of {owner.kind.lower()} {owner.name}"
    return f"{said} is {'off' if Trigger.DRIFT in owner.triggers else 'not on'}: the node stays"


def _why_it_stands(seen: DisruptionInput, found: Look, node: Node, owner: Provisioner) -> str:
    left = stays_outdated(owner, otherwise=seen.settings.drift)
    going = node.deletion_at is not None or node.uid in seen.pace.running
    chosen = found.change is not None and node.name in found.change.remove
    if going or chosen:
        return "it is being replaced"
    return left or found.held.get(node.name, "it waits for its turn")


def _story(reasons: dict[str, list[str]], of: int) -> str:
    count = sum(map(len, reasons.values()))
    told = [f"{_named(names)}: {reason}" for reason, names in sorted(reasons.items())]
    more = f"; and {len(told) - _MOST} reasons more" if len(told) > _MOST else ""
    nodes = "node is" if count == 1 else "nodes are"
    return f"{count} of {of} {nodes} outdated: {'; '.join(told[:_MOST])}{more}"


def _named(names: Sequence[str]) -> str:
    listed = sorted(names)
    more = f" and {len(listed) - _MOST} more" if len(listed) > _MOST else ""
    return ", ".join(listed[:_MOST]) + more
