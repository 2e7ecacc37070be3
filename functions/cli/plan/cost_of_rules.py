"""What each scheduling rule of a workload costs: plans without it, the dearest rule first."""

import json
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Final

import yaml
from msgspec import Struct

from functions.cli.plan.job_pods import is_of_job
from functions.cli.plan.svg_plan import workload_of
from functions.cli.plan.what_if import PlanTotals, totals
from functions.cli.printable_text import aligned, markdown_table, printable_text
from shared.model.codec import to_plain
from shared.model.dollars_and_counts import HOURS_A_MONTH, MICROS, counted
from shared.model.kubernetes.pods import (
    AffinityTerm,
    Pod,
    Scheduling,
    SpreadPolicy,
    TopologySpread,
)
from shared.model.plan import Plan
from shared.model.requirements import Requirements
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace

# Each rule is one more plan.
MOST_RULES: Final = 40
_MOST_ROWS: Final = 20
# Two plans for almost the same pods may differ by this much for no reason of a rule's.
_LEAST_MICROS: Final = 1_000
_HEADINGS: Final = ("WORKLOAD", "RULE", "COSTS $/H", "$/MONTH", "NODES WITHOUT IT")


class RuleKind(StrEnum):
    """The kinds of scheduling rules, as they are shown to people."""

    SPREAD = "topology spread"
    AFFINITY = "affinity"
    ANTI_AFFINITY = "anti-affinity"
    NODES = "node selector and node affinity"
    PREFERENCES = "preferences"


class Rule(Struct, frozen=True, kw_only=True):
    """A scheduling rule of all pods of a workload.

    Attributes:
        of_job: Whether the workload is a Job or a CronJob.
        key: The topology key; empty where the kind has none.
        dropped: Returns the constraints of a pod without the rule.
    """

    workload: str
    of_job: bool
    kind: RuleKind
    key: str
    dropped: Callable[[Scheduling], Scheduling]

    @property
    def name(self) -> str:
        """The rule in words."""
        return _in_words(self.kind, self.key)


class RuleCost(Struct, frozen=True, kw_only=True):
    """What a rule costs, in micro-dollars per hour.

    Attributes:
        of_job: Whether it costs so much only while a Job or CronJob runs.
        pods_left_out: The number of pods that have a place only without it.
        without: The totals of the plan without it.
    """

    workload: str
    rule: str
    cost_micros_per_hour: int
    pods_left_out: int
    without: PlanTotals
    of_job: bool = False


def rules_of(snapshot: ClusterSnapshot) -> tuple[Rule, ...]:
    """Return the rules of the pods to place, those of the workloads with most pods first."""
    pods: dict[str, list[Pod]] = {}
    for pod in snapshot.pending:
        pods.setdefault(workload_of(pod), []).append(pod)
    names = sorted(pods, key=lambda name: (-len(pods[name]), name))
    return tuple(
        Rule(
            workload=workload,
            of_job=is_of_job(pods[workload][0]),
            kind=kind,
            key=key,
            dropped=dropped,
        )
        for workload in names
        for kind, key, dropped in _dropped(pods[workload][0].scheduling)
    )


def rules_in_words(asked: Scheduling) -> tuple[str, ...]:
    """Return the rules of a pod that count other pods, host ports and volumes, in words."""
    rules = [_in_words(kind, key) for kind, key, _ in _dropped(asked) if kind != RuleKind.NODES]
    others = (("host ports", asked.host_ports), ("volumes", asked.claims))
    return (*rules, *(name for name, stated in others if stated))


def _in_words(kind: RuleKind, key: str) -> str:
    return f"{kind} over {key}" if key else str(kind)


def without_rule(snapshot: ClusterSnapshot, rule: Rule) -> ClusterSnapshot:
    """Return the snapshot whose pods to place do not have a rule."""
    return replace(
        snapshot,
        pending=tuple(
            replace(pod, scheduling=rule.dropped(pod.scheduling))
            if workload_of(pod) == rule.workload
            else pod
            for pod in snapshot.pending
        ),
    )


def costs_of_rules(
    snapshot: ClusterSnapshot,
    rules: Sequence[Rule],
    plan: Plan,
    decide: Callable[[ClusterSnapshot], Plan],
    may_continue: Callable[[], bool] = lambda: True,
) -> tuple[RuleCost, ...]:
    """Return what rules cost: those that leave pods out first, then the dearest; at most 40.

    Args:
        plan: The plan with all rules.
        decide: Returns the plan for a snapshot.
        may_continue: Returns whether there is time for another rule.
    """
    found = []
    for rule in rules[:MOST_RULES]:
        if not may_continue():
            break
        without = totals(decide(without_rule(snapshot, rule)))
        cost = plan.cost_micros_per_hour - without.cost_micros_per_hour
        found.append(
            RuleCost(
                workload=rule.workload,
                of_job=rule.of_job,
                rule=rule.name,
                cost_micros_per_hour=cost,
                pods_left_out=max(len(plan.unschedulable) - without.waiting, 0),
                without=without,
            )
        )
    return tuple(
        sorted(found, key=lambda one: (-one.pods_left_out, -one.cost_micros_per_hour, one.workload))
    )


def rules_text(plan: Plan, costs: Sequence[RuleCost], untried: int, output: str) -> str:
    """Return the costs as text.

    Args:
        untried: The number of rules for which no plan was made.
    """
    if output in ("json", "yaml"):
        document = {"today": to_plain(totals(plan)), "rules": to_plain(costs), "untried": untried}
        if output == "json":
            return json.dumps(document, indent=2) + "\n"
        return str(yaml.safe_dump(document, sort_keys=False))
    dear = [one for one in costs if one.pods_left_out or one.cost_micros_per_hour >= _LEAST_MICROS]
    today = totals(plan)
    lines = [f"today: {counted(today.nodes, 'node')}, {_dollars(today.cost_micros_per_hour)}/h", ""]
    if dear:
        rows = [_HEADINGS, *(_row(one, today) for one in dear[:_MOST_ROWS])]
        lines += markdown_table(rows) if output == "markdown" else aligned(rows, {2, 3, 4})
        lines.append("")
    free = len(costs) - len(dear)
    lines.append(f"{free} of {len(costs)} rules cost nothing" if costs else "no pod has a rule")
    if untried:
        lines.append(f"not tried: {untried} more rules, of workloads with fewer pods")
    return printable_text(lines)


def _row(one: RuleCost, today: PlanTotals) -> tuple[str, ...]:
    nodes, left_out = one.without.nodes, one.pods_left_out
    placed = f", {counted(left_out, 'more pod')} placed" if left_out else ""
    return (
        one.workload,
        one.rule,
        _dollars(one.cost_micros_per_hour),
        "while it runs"
        if one.of_job
        else f"${one.cost_micros_per_hour * HOURS_A_MONTH / MICROS:,.2f}",
        f"{nodes:,} ({nodes - today.nodes:+,}){placed}",
    )


def _dollars(micros: int) -> str:
    return f"${micros / MICROS:,.4f}"


def _dropped(
    asked: Scheduling,
) -> Iterator[tuple[RuleKind, str, Callable[[Scheduling], Scheduling]]]:
    """Yield the rules of a pod: kind and key, and the constraints without it."""
    for key in sorted({spread.key for spread in asked.spreads if _is_required(spread)}):
        yield RuleKind.SPREAD, key, _without_spread(key)
    for key in sorted({term.key for term in asked.affinity if term.weight is None}):
        yield RuleKind.AFFINITY, key, _without_affinity(key)
    for key in sorted({term.key for term in asked.anti_affinity if term.weight is None}):
        yield RuleKind.ANTI_AFFINITY, key, _without_anti_affinity(key)
    if asked.node_selector != Requirements() or asked.required_terms:
        yield RuleKind.NODES, "", _without_node_rules
    if _without_preferences(asked) != asked:
        yield RuleKind.PREFERENCES, "", _without_preferences


def _is_required(spread: TopologySpread) -> bool:
    return spread.policy == SpreadPolicy.DO_NOT_SCHEDULE


def _without_spread(key: str) -> Callable[[Scheduling], Scheduling]:
    def dropped(asked: Scheduling) -> Scheduling:
        left = (spread for spread in asked.spreads if spread.key != key or not _is_required(spread))
        return replace(asked, spreads=tuple(left))

    return dropped


def _without_affinity(key: str) -> Callable[[Scheduling], Scheduling]:
    return lambda asked: replace(asked, affinity=_without(asked.affinity, key))


def _without_anti_affinity(key: str) -> Callable[[Scheduling], Scheduling]:
    return lambda asked: replace(asked, anti_affinity=_without(asked.anti_affinity, key))


def _without(terms: Sequence[AffinityTerm], key: str) -> tuple[AffinityTerm, ...]:
    return tuple(term for term in terms if term.key != key or term.weight is not None)


def _without_node_rules(asked: Scheduling) -> Scheduling:
    return replace(asked, node_selector=Requirements(), required_terms=())


def _without_preferences(asked: Scheduling) -> Scheduling:
    return replace(
        asked,
        preferred_nodes=(),
        spreads=tuple(filter(_is_required, asked.spreads)),
        affinity=tuple(term for term in asked.affinity if term.weight is None),
        anti_affinity=tuple(term for term in asked.anti_affinity if term.weight is None),
    )
