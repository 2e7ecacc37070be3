"""Plans and differences as text."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import Any, Final

from msgspec import Struct

from functions.cli.plan.gap_in_words import gap
from functions.cli.plan.job_runs import job_run_lines
from functions.cli.plan.plan_difference import compare
from functions.cli.plan.plan_document import plan_document
from functions.cli.plan.planned import Planned
from functions.cli.printable_text import aligned, number_ranges, printable_text
from shared.instance_types.catalog import Catalog
from shared.instance_types.summary import summarize
from shared.model.dollars_and_counts import (
    HOURS_A_MONTH,
    MICROS,
    counted,
    dollars,
    first_names,
    signed_dollars,
)
from shared.model.ec2.launches import PlannedNode, PodRef
from shared.model.plan import KeptPreferences, Plan
from shared.model.provisioner import owner_word
from shared.packing.problem import PackingSettings

# Packing alone seldom leaves a wider gap.
_WIDE_GAP_PERCENT: Final = 10
_TYPES_SHOWN: Final = 3
_PODS_SHOWN: Final = 5
_MOVES_SHOWN: Final = 20
_HEADINGS: Final = (
    *("NODES", "NUMBER", "TYPE", "ZONE", "CAPACITY", "$/H EACH"),
    *("PODS", "CPU", "MEMORY", "OTHER"),
)
_RIGHT: Final = frozenset({0, 5, 6, 7, 8})


class PlanRun(Struct, frozen=True, kw_only=True):
    """A plan and what it was made of.

    Attributes:
        planned: The manifests and their plan, with its lower bound.
        without_each_setting: For each setting that is not the default, the plan with this one at
            its default and the others as they are.
        by_default: The plan with all settings at their defaults; None unless several were set.
        without_headroom: The plan without headroom for later pods; None if it has none anyway.
        by_cheapest_spot: The plan that compares spot nodes by their cheapest offering alone; None
            if there is no need to compare.
        show_pods: Whether the pods of each new node are listed.
        today: By which prices are old.
        verbose: Whether it is said where prices come from.
    """

    planned: Planned
    catalog: Catalog
    settings: PackingSettings
    elapsed_ms: float
    without_each_setting: tuple[tuple[str, Plan], ...]
    by_default: Plan | None
    without_headroom: Plan | None
    by_cheapest_spot: Plan | None = None
    show_pods: bool = False
    today: date
    verbose: bool = False

    @property
    def plan(self) -> Plan:
        """The plan for all pods."""
        return self.planned.plan


def plan_text(plan_run: PlanRun, output: str, explanation_lines: Sequence[str]) -> str:
    """Return the plan as a table, JSON or YAML.

    Args:
        explanation_lines: Lines of an explanation, for the table.
    """
    if output == "table":
        return printable_text(
            [*explanation_lines, *([""] if explanation_lines else []), *_table(plan_run)]
        )
    document = plan_document(plan_run.plan, plan_run.planned.cost_without_jobs, plan_run.elapsed_ms)
    if output == "json":
        import json  # noqa: PLC0415 -- loaded anyway

        return json.dumps(document, indent=2) + "\n"
    import yaml  # noqa: PLC0415 -- 20 ms that JSON and tables do not need

    dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return str(yaml.dump(document, Dumper=dumper, sort_keys=False, default_flow_style=False))


def settings_lines(plan_run: PlanRun) -> list[str]:
    """Return what each setting that is not the default costs; no line if all are defaults.

    Of several, each is compared with the plan without this one, and all with the defaults.
    """
    comparison = "by default" if len(plan_run.without_each_setting) == 1 else "without it"
    lines = [
        _setting_line(f"set {named}", plan_run.plan, plan, comparison)
        for named, plan in plan_run.without_each_setting
    ]
    if plan_run.by_default is not None and len(lines) > 1:
        every = _setting_line("all settings", plan_run.plan, plan_run.by_default, "by default")
        lines.append(every)
    if plan_run.without_headroom is not None and (
        headroom := headroom_line(plan_run.settings, plan_run.plan, plan_run.without_headroom)
    ):
        lines.append(headroom)
    if plan_run.by_cheapest_spot is not None and (
        spot := spot_line(plan_run.settings, plan_run.plan, plan_run.by_cheapest_spot)
    ):
        lines.append(spot)
    return lines


def headroom_line(settings: PackingSettings, plan: Plan, without_headroom: Plan) -> str:
    """Return what a plan would cost without headroom for later pods, empty if not less."""
    if (
        without_headroom.cost_micros_per_hour >= plan.cost_micros_per_hour
        or without_headroom.unschedulable
    ):
        return ""
    counts = f"room left over counts {settings.leftover_value_percent} % (leftover_value_percent)"
    if not settings.leftover_value_percent:
        counts = f"nodes may be larger than needed (growth_percent {settings.growth_percent})"
    price = dollars(without_headroom.cost_micros_per_hour)
    return f"{counts}, for the pods to come: without it {price}/h"


def spot_line(settings: PackingSettings, plan: Plan, by_cheapest: Plan) -> str:
    """Return what the plan by the cheapest spot offerings would cost, empty if not less."""
    if by_cheapest.cost_micros_per_hour >= plan.cost_micros_per_hour or by_cheapest.unschedulable:
        return ""
    price = dollars(by_cheapest.cost_micros_per_hour)
    return (
        f"spot nodes are compared by the mean of their {settings.diversification_k_spot} cheapest "
        f"offerings (diversification_k_spot), as EC2 may give any of them: by the cheapest alone "
        f"{price}/h"
    )


def _setting_line(named: str, plan: Plan, without: Plan, comparison: str) -> str:
    before = without.cost_micros_per_hour
    extra = _extra(plan.cost_micros_per_hour - before, before)
    nodes = counted(len(without.nodes), "node")
    lost = len(plan.unschedulable) - len(without.unschedulable)
    lost_text = f", {lost:+d} pods without a place" if lost else ""
    compared = f"against {dollars(before)}/h and {nodes} {comparison}"
    return f"{named}: {extra} {compared}{lost_text}"


def replay_text(recorded: Plan, plan: Plan, *, identical: bool) -> str:
    """Return whether a replayed decision is identical, and if not, what differs."""
    if identical:
        return printable_text([f"byte-identical: {_totals(plan)}"])
    return f"not identical\n{difference_text(recorded, plan, ())}"


def difference_text(before: Plan, after: Plan, changed: Sequence[str]) -> str:
    """Return how a second plan differs in $, nodes and pods.

    Args:
        changed: Settings of the second that differ, each `key=value`.
    """
    found = compare(before, after)
    extra = _extra(found.cost_micros_per_hour, found.cost_before)
    costs = f"{dollars(found.cost_before)}/h -> {dollars(found.cost_after)}/h"
    lines = [
        *(f"set {value}" for value in changed),
        f"cost: {costs}, {extra}",
        f"nodes: {found.nodes_before} -> {found.nodes_after}",
        *(f"  {count:+d} {' '.join(kind)}" for kind, count in found.nodes),
        f"pods: {len(found.pods)} elsewhere",
    ]
    moves = Counter((first, second) for _, first, second in found.pods)
    ordered = sorted(moves.items(), key=lambda move: (-move[1], move[0]))
    lines += [
        f"  {count} from {first} to {then}" for (first, then), count in ordered[:_MOVES_SHOWN]
    ]
    if len(ordered) > _MOVES_SHOWN:
        lines.append(f"  and {len(ordered) - _MOVES_SHOWN} more kinds of moves")
    return printable_text(lines)


def _table(plan_run: PlanRun) -> list[str]:
    plan = plan_run.plan
    prices = summarize(plan_run.catalog)
    lines = [_totals(plan), *([prices.line(plan_run.today)] if plan.nodes else [])]
    lines += [*_jobs_lines(plan_run.planned), *settings_lines(plan_run)]
    if plan.gap_percent > _WIDE_GAP_PERCENT:
        lines.append(
            "the lower bound ignores limits, weights, preferences and some rules between pods"
        )
    if plan.remark:
        lines.append(plan.remark)
    if plan.preferences.stated:
        lines.append(preferences_line(plan.preferences))
    if plan.nodes:
        lines += ["", *aligned([_headings(plan_run), *_rows(plan.nodes)], _RIGHT)]
    if plan.nodes and plan_run.show_pods:
        lines += ["", "on new nodes:"]
        lines += [
            f"  {number}: {', '.join(pod.key for pod in node.pods)}"
            for number, node in enumerate(plan.nodes, 1)
        ]
    if plan.placements:
        lines += ["", "on nodes that are there:"]
        lines += [f"  {placement.node}: {_named(placement.pods)}" for placement in plan.placements]
    if plan.unschedulable:
        lines += ["", f"{counted(len(plan.unschedulable), 'pod')} without a place:"]
        lines += _refusals(plan)
    took = f"decided in {plan_run.elapsed_ms:.1f} ms"
    return [*lines, "", f"{took}; {prices}" if plan_run.verbose else took]


def _jobs_lines(planned: Planned) -> Iterator[str]:
    """Yield what the plan costs without Jobs and what they cost, if they cost anything."""
    if jobs := list(job_run_lines(planned)):
        always = planned.cost_without_jobs
        month = always * HOURS_A_MONTH / MICROS
        yield f"what runs always costs {dollars(always)}/h, ${month:,.2f} a month; besides:"
        yield from (f"  {line}" for line in jobs)


def preferences_line(found: KeptPreferences) -> str:
    """Return how many preferences of pods a plan keeps, and what keeping the others would cost."""
    rest = found.rest_micros_per_hour
    more = f"; keeping as many as possible costs {dollars(rest)}/h more" if rest else ""
    return f"{found.kept:,} of {found.stated:,} preferences of pods are kept{more}"


def _totals(plan: Plan) -> str:
    new = sum(len(node.pods) for node in plan.nodes)
    placed = sum(len(placement.pods) for placement in plan.placements)
    if not (new or placed or plan.unschedulable):
        return "no pod waits for capacity: nothing to launch"
    there = f", {counted(placed, 'pod')} on nodes that are there" if placed else ""
    bound = plan.lower_bound_micros_per_hour
    proved = f", lower bound {dollars(bound)}/h" if bound or not plan.nodes else ""
    return (
        f"{counted(len(plan.nodes), 'new node')} for {counted(new, 'pod')}{there}: "
        f"{dollars(plan.cost_micros_per_hour)}/h{proved}, {gap(plan)}"
    )


def _headings(plan_run: PlanRun) -> tuple[str, ...]:
    word = owner_word(plan_run.planned.snapshot.provisioners).upper()
    return (*_HEADINGS, "OWNER" if " " in word else word, "OPTIONS")


def _rows(nodes: Iterable[PlannedNode]) -> list[tuple[str, ...]]:
    """Return one row for each group of equal nodes, sorted by Provisioner, offering and price.

    Nodes are numbered in the order of the plan, as in pictures and explanations.
    """
    rows: dict[tuple[str, ...], list[int]] = {}
    for number, node in enumerate(nodes, 1):
        rows.setdefault(_row(node), []).append(number)
    ordered = sorted(rows.items(), key=lambda row: (row[0][8], row[0][:4], -len(row[1]), row[1]))
    return [(str(len(numbers)), number_ranges(numbers), *row) for row, numbers in ordered]


def _row(node: PlannedNode) -> tuple[str, ...]:
    first = node.options[0]
    used = node.requests + node.daemon_requests
    allocatable = first.allocatable
    other = [f"{name} {used[name]}/{amount}" for name, amount in allocatable.items if "/" in name]
    types = list(dict.fromkeys(option.offering.instance_type for option in node.options))
    shown = first_names(types[1:], _TYPES_SHOWN)
    offerings = counted(len(node.options), "offering")
    options = offerings if len(types) == 1 else f"{offerings}, {len(types)} types: also {shown}"
    return (
        first.offering.instance_type,
        first.offering.zone,
        first.offering.capacity_type.value,
        dollars(node.price_micros_per_hour).removeprefix("$"),
        str(len(node.pods)),
        _percent(used["cpu"], allocatable["cpu"]),
        _percent(used["memory"], allocatable["memory"]),
        " ".join(other) or "-",
        node.provisioner,
        options,
    )


def _percent(used: int, allocatable: int) -> str:
    return f"{100 * used / allocatable:.0f} %" if allocatable else "-"


def _refusals(plan: Plan) -> list[str]:
    by_reason: dict[tuple[str, ...], list[PodRef]] = {}
    for pod_left in plan.unschedulable:
        by_reason.setdefault(pod_left.reasons, []).append(pod_left.pod)
    lines = []
    for reasons, pods in by_reason.items():
        lines.append(f"  {_named(pods)}")
        lines += [f"    {reason}" for reason in reasons]
    return lines


def _named(pods: Sequence[PodRef]) -> str:
    return first_names((pod.key for pod in pods), _PODS_SHOWN)


def _extra(micros: int, before: int) -> str:
    """Return how much more or less than before is paid, in dollars and percent."""
    percent = f" ({100 * micros / before:+.2f} %)" if before else ""
    return f"{signed_dollars(micros)}/h{percent}"
