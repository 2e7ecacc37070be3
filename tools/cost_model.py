"""What Dovetail costs a month, computed from the synthesised templates.

    python -m tools.cost_model --assembly cdk.out --write

Rates, memory and numbers of alarms are read from the templates; how long functions run and how
often they call the ledger is in `tools.cost_inputs`, with its reason.
"""

import argparse
import json
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tools.cost_inputs import ASSUMED, PRICES
from tools.made_part import replaced, with_result

HOURS: Final = 730
MINUTES: Final = HOURS * 60
MARKS: Final = ("<!-- computed by tools/cost_model.py -->", "<!-- end of what is computed -->")
_MIB_PER_GB: Final = 1024
_PAGE: Final = Path(__file__).parents[1] / "docs" / "evidence" / "cost.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a bill, in dollars."""

    name: str
    dollars: float
    how: str


class Bill:
    """The costs of one control plane and its clusters."""

    def __init__(self, control_plane: Mapping[str, Any], cluster: Mapping[str, Any]) -> None:
        """Read the settings.

        Args:
            control_plane: The control plane's template.
            cluster: The template of one attachment.
        """
        self._resources = control_plane["Resources"]
        self._cluster = cluster["Resources"]

    def idle(self) -> tuple[Line, ...]:
        """Return what a month costs with one cluster in which nothing happens."""
        beats = assumed("heartbeats_an_hour") * HOURS
        sweeps = self._a_month("sweep")
        ticks = self._a_month("refresh_catalog")
        refreshes = min(ticks, assumed("catalogues_a_day") * HOURS / 24)
        polls = assumed("pollers") * MINUTES * 3
        return (
            Line(
                name="compute: sweep",
                dollars=self._compute("sweep", sweeps, assumed("sweep_seconds")),
                how=f"{sweeps:,.0f} looks",
            ),
            Line(
                name="compute: heartbeat",
                dollars=self._compute("heartbeat", beats, assumed("heartbeat_seconds")),
                how=f"{beats:,.0f} heartbeats",
            ),
            Line(
                name="compute: refresh_catalog",
                dollars=self._compute("refresh_catalog", refreshes, assumed("catalogue_seconds"))
                + self._compute("refresh_catalog", ticks - refreshes, assumed("tick_seconds")),
                how=f"{refreshes:,.0f} catalogues, {ticks - refreshes:,.0f} looks at a fresh one",
            ),
            Line(
                name="queues",
                dollars=polls * PRICES["sqs_request"],
                how=f"{polls:,.0f} empty polls by Lambda",
            ),
            Line(
                name="bus",
                dollars=beats * PRICES["event"],
                how="heartbeats; schedules and events of EC2 are free",
            ),
            Line(
                name="ledger",
                dollars=sweeps * assumed("sweep_reads") * PRICES["ledger_read"]
                + beats * (PRICES["ledger_read"] + PRICES["ledger_write"]),
                how="what sweep reads, what heartbeats read and write",
            ),
        )

    def million_pod_events(self, burst: int) -> tuple[Line, ...]:
        """Return what a million pods that ask for room cost, `burst` of them at a time."""
        plans = math.ceil(1_000_000 / burst)
        nodes = 1_000_000 / assumed("pods_a_node")
        buys = min(plans, nodes)
        looks = plans - buys
        leading = plans if HOURS * 3600 / plans >= assumed("quiet_seconds") else 0
        twice = assumed("settle_seconds") + assumed("again_seconds")

        def each(what: str) -> float:
            return buys * assumed(f"buy_{what}") + looks * assumed(f"look_{what}")

        writes = each("writes") + (nodes - buys) * assumed("node_more_writes")
        return (
            Line(name="bus", dollars=plans * PRICES["event"], how="coalesced by the forwarder"),
            Line(
                name="queues",
                dollars=plans * assumed("queue_requests") * PRICES["sqs_request"],
                how="sent, received, deleted",
            ),
            Line(
                name="compute: provision",
                dollars=self._compute("provision", plans, each("seconds") / plans),
                how=f"{plans:,} plans, {buys:,.0f} of them buy",
            ),
            Line(
                name="fast lane",
                dollars=self._compute("provision", leading, twice)
                + leading * assumed("again_reads") * PRICES["ledger_read"]
                + leading * assumed("again_writes") * PRICES["ledger_write"],
                how=f"{leading:,} bursts after quiet: the wait for their end, and the queue's copy",
            ),
            Line(
                name="ledger",
                dollars=each("reads") * PRICES["ledger_read"] + writes * PRICES["ledger_write"],
                how="leases, intents, slots",
            ),
            Line(
                name="decisions",
                dollars=each("objects") * PRICES["s3_put"],
                how="written to S3",
            ),
            Line(
                name="decisions kept",
                dollars=plans * assumed("decision_bytes") / 1e9 * PRICES["s3_gb_month"],
                how=f"{plans * assumed('decision_bytes') / 1e9:,.1f} GB for 30 days",
            ),
        )

    def thousand_nodes(self) -> tuple[Line, ...]:
        """Return what a thousand nodes cost from launch to end, the instances left out."""
        count = 1000
        calls = count * assumed("node_calls")
        messages = count * assumed("node_messages")
        return (
            Line(
                name="bus",
                dollars=messages * PRICES["event"],
                how=f"{messages:,.0f} messages of the forwarder",
            ),
            Line(
                name="timers",
                dollars=count * assumed("node_transitions") * PRICES["transition"],
                how="transitions of Step Functions",
            ),
            Line(
                name="compute",
                dollars=self._compute("termination", calls, assumed("node_call_seconds")),
                how=f"{calls:,.0f} calls",
            ),
            Line(
                name="ledger",
                dollars=count * assumed("node_writes") * PRICES["ledger_write"],
                how="slots, instances, timers",
            ),
        )

    def observability(self) -> tuple[Line, ...]:
        """Return what watching costs a month with one cluster, whatever happens."""
        shared, own = alarm_metrics(self._resources), alarm_metrics(self._cluster)
        logs = self._a_month("sweep") * assumed("log_bytes_a_call") / 1e9
        dashboards = sum(
            1 for entry in self._cluster.values() if entry["Type"].endswith("Dashboard")
        )
        return (
            Line(
                name="alarms of the control plane",
                dollars=shared * PRICES["alarm_metric"],
                how=f"{shared} metrics under alarm",
            ),
            Line(
                name="alarms of a cluster",
                dollars=own * PRICES["alarm_metric"],
                how=f"{own} metrics under alarm",
            ),
            Line(
                name="dashboard of a cluster",
                dollars=dashboards * PRICES["dashboard"],
                how="the first three of an account are free",
            ),
            Line(
                name="metrics of a quiet cluster",
                dollars=PRICES["custom_metric"] * (2 + 2 / 24),
                how="heartbeats and sweeps all the time, the catalogue in two hours a day",
            ),
            Line(name="logs", dollars=logs * PRICES["log_gb"], how=f"{logs:.2f} GB"),
        )

    def _compute(self, function: str, calls: float, seconds: float) -> float:
        memory: float = self._function(function)["Properties"]["MemorySize"] / _MIB_PER_GB
        gb_seconds = calls * seconds * memory
        price = PRICES["lambda_arm_gb_second"]
        return gb_seconds * price + calls * PRICES["lambda_request"]

    def _function(self, name: str) -> Mapping[str, Any]:
        wanted = f"functions.{name}.handler.handler"
        return next(
            resource
            for resource in self._resources.values()
            if resource["Type"] == "AWS::Lambda::Function"
            and resource["Properties"]["Handler"] == wanted
        )

    def _a_month(self, function: str) -> float:
        """Return how often the schedules call a function in a month."""
        wanted = next(
            name
            for name, resource in self._resources.items()
            if resource is self._function(function)
        )
        return sum(
            MINUTES / minutes_of(resource["Properties"]["ScheduleExpression"])
            for resource in self._resources.values()
            if resource["Type"] == "AWS::Events::Rule"
            and "ScheduleExpression" in resource["Properties"]
            and resource["Properties"]["Targets"][0]["Arn"]["Fn::GetAtt"][0] == wanted
        )


def assumed(name: str) -> float:
    """Return an assumed number."""
    return ASSUMED[name][0]


def alarm_metrics(resources: Mapping[str, Any]) -> int:
    """Return how many metrics the alarms watch: an alarm is paid for by metric."""
    return sum(
        sum(
            "MetricStat" in row
            for row in resource["Properties"].get("Metrics", ({"MetricStat": {}},))
        )
        for resource in resources.values()
        if resource["Type"] == "AWS::CloudWatch::Alarm"
    )


def minutes_of(expression: str) -> float:
    """Return the minutes between two calls of a schedule.

    Raises:
        ValueError: If the expression is no rate.
    """
    found = re.fullmatch(r"rate\((\d+) (minute|hour|day)s?\)", expression)
    if found is None:
        raise ValueError(f"{expression!r}: only rates are understood")
    return int(found[1]) * {"minute": 1, "hour": 60, "day": 1440}[found[2]]


def total(lines: Iterable[Line]) -> float:
    """Return the sum."""
    return sum(line.dollars for line in lines)


def tables(bill: Bill) -> str:
    """Return everything that is computed, as Markdown."""
    parts = [
        _table("Idle, a month: compute, queues, ledger", bill.idle()),
        _table("Observability, a month", bill.observability()),
        _table("A thousand nodes, from launch to end", bill.thousand_nodes()),
        _table("A million pod events, ten at a time", bill.million_pod_events(10)),
    ]
    bursts = "\n".join(
        f"| {burst} | {total(bill.million_pod_events(burst)):.2f} |"
        for burst in (1, 2, 3, 5, 8, 10, 50, 200)
    )
    parts.append(f"| pods at a time | dollars a million |\n|---:|---:|\n{bursts}")
    rows = "\n".join(f"| `{name}` | {n:g} | {why} |" for name, (n, why) in ASSUMED.items())
    parts.append(f"### Assumed\n\n| what | value | why |\n|---|---:|---|\n{rows}")
    return "\n\n".join(parts)


def result(bill: Bill) -> str:
    """Return the sums in one line."""
    idle, watched = total(bill.idle()), total(bill.observability())
    return (
        f"${idle:.2f} a month while nothing happens, ${watched:.2f} for alarms, dashboard and "
        f"logs, ${total(bill.million_pod_events(10)):.2f} per million pods, ten at a time"
    )


def _table(title: str, lines: Sequence[Line]) -> str:
    rows = "\n".join(f"| {line.name} | {line.dollars:.3f} | {line.how} |" for line in lines)
    head = f"### {title}\n\n| | dollars | |\n|---|---:|---|"
    return f"{head}\n{rows}\n| **sum** | **{total(lines):.2f}** | |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables, or write them into a page."""
    parser = argparse.ArgumentParser(prog="python -m tools.cost_model", description=__doc__)
    parser.add_argument("--assembly", type=Path, default=Path("cdk.out"))
    parser.add_argument("--cluster", default="prod")
    parser.add_argument("--write", action="store_true", help="into docs/evidence/cost.md")
    given = parser.parse_args(arguments)
    names = ("DovetailControlPlane", f"DovetailCluster-{given.cluster}")
    read = [
        json.loads((given.assembly / f"{name}.template.json").read_text(encoding="utf-8"))
        for name in names
    ]
    bill = Bill(*read)
    text = tables(bill)
    if given.write:
        page = replaced(_PAGE.read_text(encoding="utf-8"), text, MARKS)
        _PAGE.write_text(with_result(page, result(bill)), encoding="utf-8")
    else:
        sys.stdout.write(f"{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
