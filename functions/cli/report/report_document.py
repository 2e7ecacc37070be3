"""The report for programs: as JSON, or as rows of comma-separated values."""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from functions.cli.report.actions import CostAction
from functions.cli.report.cost_report import CostReport
from functions.cli.report.page import Subject
from functions.cli.report.repacking import Outcome, on_spot_prices
from functions.cli.report.rules import RuleInPool
from functions.cli.report.shares import shares_by_namespace
from shared.model.codec import to_plain
from shared.model.dollars_and_counts import MICROS
from shared.provisioning.savings.inventory import FilledNode, by_pool, cost
from shared.provisioning.savings.pools import Pool

AS_IT_RUNS: Final = "as it runs"
_COLUMNS: Final = (
    *("plan", "pool_kind", "pool", "nodes", "dollars_per_hour", "saved_dollars_per_hour"),
    "saving_rests_on_made_up_spot_prices",
)
_ACTION: Final = "action: "


def json_report(report: CostReport, subject: Subject) -> str:
    """Return the report as a JSON object; prices are in micro-dollars per hour."""
    document = {
        "cluster": subject.cluster,
        "read_at": subject.read_at,
        "prices": to_plain(subject.prices),
        "plans": {name: _outcome(outcome, report) for name, outcome in _plans(report)},
        "settings": {name: _outcome(outcome, report) for name, outcome in report.variants},
        "namespaces": dict(shares_by_namespace(report.running.nodes)),
        "rules": list(map(_rule, report.rules.rules)),
        "rules_not_tried": [
            {"workload": workload, "rule": rule} for workload, rule in report.rules.untried
        ],
        "actions": list(map(_action, report.actions.listed)),
        "pool_edits_together_micros_per_hour": report.actions.together_micros_per_hour,
        "spot_prices_are_made_up": report.made_up_spot,
        "nodes_left_out": len(report.excluded),
        "pods_that_wait": report.waiting,
        "notes": list(subject.notes),
    }
    return json.dumps(document, indent=2) + "\n"


def csv_report(report: CostReport) -> str:
    """Return a row for each pool under each plan, and each action; prices in dollars per hour."""
    written = io.StringIO()
    rows = csv.writer(written)
    rows.writerow(_COLUMNS)
    for name, outcome in _plans(report):
        rows.writerows(_rows(name, outcome, report))
    for action in report.actions.listed:
        pool, on_spot = action.pool, report.made_up_spot and action.on_spot_prices
        saved = _dollars(action.saving_micros_per_hour)
        name = f"{_ACTION}{action.title}"
        rows.writerow((name, str(pool.kind), pool.name, "", "", saved, _yes(on_spot)))
    return written.getvalue()


def _plans(report: CostReport) -> Iterator[tuple[str, Outcome]]:
    yield AS_IT_RUNS, report.running
    for name, outcome in report.alternatives.items():
        yield name.value, outcome


def _rows(plan: str, outcome: Outcome, report: CostReport) -> Iterator[tuple[object, ...]]:
    then = by_pool(outcome.nodes)
    for pool, before in by_pool(report.running.nodes).items():
        nodes = then.get(pool, ())
        saved = _dollars(cost(before) - cost(nodes))
        rests = on_spot_prices(Outcome(nodes=before), Outcome(nodes=nodes))
        on_spot = _yes(report.made_up_spot and rests)
        yield plan, str(pool.kind), pool.name, len(nodes), _dollars(cost(nodes)), saved, on_spot


def _dollars(micros: int) -> str:
    return f"{micros / MICROS:.6f}"


def _yes(true: bool) -> str:  # noqa: FBT001 -- the cell of a value
    return "yes" if true else "no"


def _action(action: CostAction) -> Mapping[str, Any]:
    return {
        "title": action.title,
        "pool": {"kind": str(action.pool.kind), "name": action.pool.name},
        "saving_micros_per_hour": action.saving_micros_per_hour,
        "saving_rests_on_spot_prices": action.on_spot_prices,
        "risk": action.risk,
        "how": action.how,
        "manifest": action.manifest,
    }


def _rule(one: RuleInPool) -> Mapping[str, Any]:
    return {
        "workload": one.rule.workload,
        "rule": one.rule.name,
        "pool": {"kind": str(one.pool.kind), "name": one.pool.name},
        "cost_micros_per_hour": one.cost.cost_micros_per_hour,
        "nodes": one.nodes,
        "nodes_without_it": one.cost.without.nodes,
    }


def _outcome(outcome: Outcome, report: CostReport) -> Mapping[str, Any]:
    return {
        "cost_micros_per_hour": outcome.cost_micros_per_hour,
        "lower_bound_micros_per_hour": outcome.lower_bound_micros_per_hour,
        "saving_rests_on_spot_prices": on_spot_prices(report.running, outcome),
        "nodes": len(outcome.nodes),
        "pools": list(map(_pool, sorted(by_pool(outcome.nodes).items()))),
        "pods_that_keep_their_node": dict(outcome.held),
    }


def _pool(entry: tuple[Pool, Sequence[FilledNode]]) -> Mapping[str, Any]:
    pool, nodes = entry
    return {
        "kind": str(pool.kind),
        "name": pool.name,
        "nodes": len(nodes),
        "cost_micros_per_hour": cost(nodes),
    }
