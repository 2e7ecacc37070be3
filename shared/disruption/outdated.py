"""Which nodes are no longer what their owner asks for, and why they stay: reported on the owner."""

from typing import Final

from shared.disruption.drift import reports_drift
from shared.disruption.evaluation import DisruptionInput, Evaluation, drift_reason
from shared.model.dollars_and_counts import first_names
from shared.model.kubernetes.nodes import Node
from shared.model.policy import Trigger
from shared.model.provisioner import Provisioner

# Most reasons that one text gives, and most nodes that it names for each.
_MOST: Final = 3


def outdated_texts(disruption_input: DisruptionInput, evaluation: Evaluation) -> dict[str, str]:
    """Return a text about the outdated nodes of each owner that has any, by its name.

    For NodePools also where such nodes are not replaced.

    Args:
        evaluation: What the evaluation of the cluster chose.
    """
    texts = {}
    for owner in disruption_input.snapshot.provisioners:
        if not reports_drift(owner, otherwise=disruption_input.settings.drift):
            continue
        nodes = [
            node for node in disruption_input.snapshot.nodes if node.is_ours and owner.owns(node)
        ]
        reasons: dict[str, list[str]] = {}
        for node in nodes:
            if how := drift_reason(disruption_input, node, owner):
                why = _why_it_stands(disruption_input, evaluation, node, owner)
                reasons.setdefault(f"{how} ({why})", []).append(node.name)
        if reasons:
            texts[owner.name] = _text(reasons, len(nodes))
    return texts


def stays_outdated(owner: Provisioner, *, otherwise: bool) -> str:
    """Return why no drifted node of an owner is replaced, empty where they are.

    Args:
        otherwise: Whether drift is acted on for Provisioners that do not say.
    """
    if owner.acts_on(Trigger.DRIFT, otherwise=otherwise):
        return ""
    setting = f"{Trigger.DRIFT.annotation} of {owner.kind.lower()} {owner.name}"
    return f"{setting} is {'off' if Trigger.DRIFT in owner.triggers else 'not on'}: the node stays"


def _why_it_stands(
    disruption_input: DisruptionInput, evaluation: Evaluation, node: Node, owner: Provisioner
) -> str:
    left = stays_outdated(owner, otherwise=disruption_input.settings.drift)
    going = node.deletion_at is not None or node.uid in disruption_input.ongoing.running
    chosen = evaluation.change is not None and node.name in evaluation.change.remove
    if going or chosen:
        return "it is being replaced"
    return left or evaluation.skipped.get(node.name, "it waits for its turn")


def _text(reasons: dict[str, list[str]], of: int) -> str:
    count = sum(map(len, reasons.values()))
    named_reasons = [
        f"{first_names(sorted(names), _MOST)}: {reason}"
        for reason, names in sorted(reasons.items())
    ]
    more = f"; and {len(named_reasons) - _MOST} reasons more" if len(named_reasons) > _MOST else ""
    nodes = "node is" if count == 1 else "nodes are"
    return f"{count} of {of} {nodes} outdated: {'; '.join(named_reasons[:_MOST])}{more}"
