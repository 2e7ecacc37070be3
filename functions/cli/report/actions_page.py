"""The parts of the page about what rules cost, and what to do."""

from html import escape
from typing import Final

from functions.cli.plan.cost_of_rules import MOST_RULES
from functions.cli.report.actions import Actions, CostAction
from functions.cli.report.cost_report import Alternative, CostReport
from functions.cli.report.price_text import (
    hourly_price_text,
    monthly_price_text,
    percent_text,
    spot_text,
)
from functions.cli.report.rules import MOST_PODS, RuleInPool
from functions.cli.report.tables_and_bars import TableCell, number, table
from shared.model.dollars_and_counts import counted, first_names

# Two plans for almost the same pods may differ by this much for no reason of a rule's.
_LEAST_MICROS: Final = 1_000
_NAMED: Final = 3
_OVERLAP: Final = (
    "Each saving is that of one action alone, the difference of two plans: its pool repacked as it "
    "is declared now, and with this edit. What consolidation saves is the difference to what runs. "
    "Savings overlap: do not add them."
)


def rules_section(report: CostReport) -> str:
    """Return the section about rules; empty where no pod has one."""
    rules = report.rules.rules
    if not rules and not report.rules.untried:
        return ""
    dear = [one for one in rules if one.cost.cost_micros_per_hour >= _LEAST_MICROS]
    shown = ""
    if dear:
        shown = table(
            "The nodes of a workload's pods, planned again without one of its rules. Each pool "
            "is repacked as it is declared.",
            ("workload", "rule", ">costs $/h", ">a month", ">nodes", ">without it"),
            [_rule_row(one) for one in dear],
        )
    told = f"Of {counted(len(rules), 'rule')} tried, {len(rules) - len(dear)} cost nothing."
    if untried := report.rules.untried:
        workloads = list(dict.fromkeys(workload for workload, _ in untried))
        told += (
            f" Not tried: {counted(len(untried), 'rule')} of {first_names(workloads, _NAMED)}. A "
            f"report tries up to {MOST_RULES} rules and plans up to {MOST_PODS:,} pods again for "
            "them, first for the rules that could cost most."
        )
    return f'<h2>What rules cost</h2>{shown}<p class="soft">{told}</p>'


def _rule_row(one: RuleInPool) -> tuple[TableCell, ...]:
    micros = one.cost.cost_micros_per_hour
    return (
        TableCell(text=one.rule.workload, below=str(one.pool)),
        TableCell(text=one.rule.name),
        number(hourly_price_text(micros)),
        number(monthly_price_text(micros)),
        number(f"{one.nodes:,}"),
        number(f"{one.cost.without.nodes:,}"),
    )


def actions_section(report: CostReport) -> str:
    """Return the section about what to do; empty where nothing saves enough."""
    actions = report.actions
    told = f"<p>{escape(_by_themselves(report))}</p>" if actions.by_themselves else ""
    if not actions.listed:
        return f"<h2>What to do</h2>{told}" if told else ""
    rows = [_action_row(place, action, report) for place, action in enumerate(actions.listed, 1)]
    shown = table("", ("", "action", ">saves $/h", ">a month"), rows)
    together = f"<p>{escape(together_text(report))}</p>" if actions.edited_pools > 1 else ""
    manifests = "".join(
        f"<h3>{place}. {escape(action.title)}</h3><pre>{escape(action.manifest)}</pre>"
        for place, action in enumerate(actions.listed, 1)
        if action.manifest
    )
    return f'<h2>What to do</h2><p class="soft">{_OVERLAP}</p>{shown}{told}{together}{manifests}'


def _by_themselves(report: CostReport) -> str:
    """Return what consolidation saves where nobody has to do anything for it."""
    actions = report.actions
    saved = actions.by_themselves_micros_per_hour
    limits = "" if report.budgets_known else ", where PodDisruptionBudgets, not read here, let it"
    names = first_names(list(map(str, actions.by_themselves)), _NAMED)
    return (
        f"Nobody has to do anything for what consolidation saves in {names}, "
        f"{hourly_price_text(saved)}/h, {monthly_price_text(saved)} a month: they allow it, and "
        f"their autoscaler does it by default{limits}."
    )


def _action_row(place: int, action: CostAction, report: CostReport) -> tuple[TableCell, ...]:
    saved = action.saving_micros_per_hour
    clause = spot_text(report, on_spot=action.on_spot_prices)
    told = f" The saving rests{clause}." if clause else ""
    return (
        TableCell(text=str(place)),
        TableCell(text=action.title, below=f"{action.risk} {action.how}{told}"),
        number(hourly_price_text(saved), saves=saved),
        number(monthly_price_text(saved), saves=saved),
    )


def together_text(report: CostReport) -> str:
    """Return what all edits of pools save as one plan."""
    actions: Actions = report.actions
    now, then = report.running.cost_micros_per_hour, actions.together_micros_per_hour
    base = report.alternatives[Alternative.REPACKED].cost_micros_per_hour
    clause = spot_text(report, on_spot=any(one.on_spot_prices for one in actions.listed))
    return (
        f"All edits of {counted(actions.edited_pools, 'pool')} together, as one plan: "
        f"{hourly_price_text(then)}/h. That is {hourly_price_text(base - then)}/h "
        f"({monthly_price_text(base - then)} a month) less than repacked as declared now, and "
        f"{percent_text(now - then, now)} less than what runs{clause}."
    )
