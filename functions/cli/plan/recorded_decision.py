"""Replays a recorded decision."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from functions.cli.plan.decision_documents import REMEDY, Bases, no_bases, read_document
from shared.manifests.raw_json import mapping
from shared.model.codec import CodecError, from_plain, to_json
from shared.model.ec2.launches import PlannedNode
from shared.model.errors import InvalidManifestError
from shared.model.plan import Plan
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from shared.provisioning.decisions.record import recorded_plan


class RecordedDecision(Struct, frozen=True, kw_only=True):
    """A recorded decision.

    Attributes:
        canonical_plan: The plan's bytes as recorded.
        change: The reason of a decision that changes nodes; empty if it is about pending pods.
    """

    plan_id: str
    snapshot: ClusterSnapshot
    settings: PackingSettings
    plan: Plan
    canonical_plan: bytes
    change: Mapping[str, Any] = field(default_factory=dict)

    def replay(self, settings: PackingSettings | None = None) -> Plan:
        """Decide again, with the recorded settings or others."""
        return decide(self.snapshot, self.settings if settings is None else settings)

    def is_identical(self, plan: Plan) -> bool:
        """Return whether a plan equals the recorded one in each byte but its lower bound."""
        bound = self.plan.lower_bound_micros_per_hour
        same = replace(plan, lower_bound_micros_per_hour=bound)
        return to_json(recorded_plan(same)) == self.canonical_plan


def load_decision(content: bytes, bases: Bases = no_bases) -> RecordedDecision:
    """Return the decision in a document, compressed or not.

    Args:
        bases: Returns the base of the decision, if it has one.

    Raises:
        InvalidManifestError: If it is not a decision.
        MissingBaseError: If the base that it names does not exist.
    """
    document = read_document(content, bases)
    plain_plan = document.get("plan")
    try:
        decision = RecordedDecision(
            plan_id=from_plain(str, document.get("plan_id", "")),
            snapshot=_part(ClusterSnapshot, document, "snapshot"),
            settings=_part(PackingSettings, document, "settings", {}),
            plan=_part(Plan, document, "plan"),
            canonical_plan=to_json(plain_plan),
            change=mapping(document.get("change")),
        )
        _refuse_without_options(decision.snapshot.launching, "snapshot", "launching")
        _refuse_without_options(decision.plan.nodes, "plan", "nodes")
    except CodecError as error:
        path = ".".join(error.path) or "plan_id"
        remedy = f"{error.problem}; {REMEDY}"
        raise InvalidManifestError(field=path, value=None, remedy=remedy) from error
    return decision


def _refuse_without_options(nodes: Sequence[PlannedNode], *path: str) -> None:
    for number, node in enumerate(nodes):
        if not node.options:
            problem = "must have an offering that it can be launched as"
            raise CodecError(problem, (*path, str(number), "options"))


def _part(kind: type[Any], document: dict[str, Any], name: str, default: object = None) -> Any:
    try:
        return from_plain(kind, document.get(name, default), exact=True)
    except CodecError as error:
        raise error.inside(name) from error
