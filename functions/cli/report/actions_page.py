"""The parts of the page about what rules cost, and what to do."""

from html import escape
from typing import Final

from functions.cli.report.actions import Actions, CostAction
from functions.cli.report.cost_report import Alternative, CostReport
from functions.cli.report.price_text import hourly_price_text, monthly_price_text, percent_text
from functions.cli.report.rules import RuleInPool
from functions.cli.report.tables_and_bars import TableCell, number, table
from shared.model.dollars_and_counts import counted

# Two plans for almost the same pods may differ by this much for no reason of a rule's.
_LEAST_MICROS: Final = 1_000
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
    told = f"{len(rules) - len(dear)} of {counted(len(rules), 'rule')} cost nothing."
    if report.rules.untried:
        told += f" {report.rules.untried:,} more could cost less and were not tried."
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
    if not actions.listed:
        return ""
    rows = [_action_row(place, action) for place, action in enumerate(actions.listed, 1)]
    shown = table("", ("", "action", ">saves $/h", ">a month"), rows)
    together = f"<p>{escape(together_text(report))}</p>" if actions.edited_pools > 1 else ""
    manifests = "".join(
        f"<h3>{place}. {escape(action.title)}</h3><pre>{escape(action.manifest)}</pre>"
        for place, action in enumerate(actions.listed, 1)
        if action.manifest
    )
    return f'<h2>What to do</h2><p class="soft">{_OVERLAP}</p>{shown}{together}{manifests}'


def _action_row(place: int, action: CostAction) -> tuple[TableCell, ...]:
    saved = action.saving_micros_per_hour
    return (
        TableCell(text=str(place)),
        TableCell(text=action.title, below=f"{action.risk} {action.how}"),
        number(hourly_price_text(saved), saves=saved),
        number(monthly_price_text(saved), saves=saved),
    )


def together_text(report: CostReport) -> str:
    """Return what all edits of pools save as one plan."""
    actions: Actions = report.actions
    now, then = report.running.cost_micros_per_hour, actions.together_micros_per_hour
    base = report.alternatives[Alternative.REPACKED].cost_micros_per_hour
    return (
        f"All edits of {counted(actions.edited_pools, 'pool')} together, as one plan: "
        f"{hourly_price_text(then)}/h. That is {hourly_price_text(base - then)}/h "
        f"({monthly_price_text(base - then)} a month) less than repacked as declared now, and "
        f"{percent_text(now - then, now)} less than what runs."
    )
