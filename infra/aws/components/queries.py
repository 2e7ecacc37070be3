"""Queries on the functions' logs, saved in CloudWatch Logs Insights."""

from collections.abc import Mapping, Sequence
from typing import Final

from aws_cdk import aws_logs as logs
from constructs import Construct

# By name: the functions whose logs are queried, and the query.
QUERIES: Final[Mapping[str, tuple[Sequence[str], str]]] = {
    "decisions": (
        ("provision",),
        (
            "fields @timestamp, cluster, lane, plan_id, report.nodes_launched, "
            "report.pods_planned, report.cost_micros_per_hour / 1000000 as dollars_per_hour\n"
            '| filter message = "provisioned" and report.nodes_launched > 0\n'
            "| sort @timestamp desc\n"
            "| limit 100"
        ),
    ),
    "errors": (
        (
            "provision",
            "bind",
            "emptiness",
            "expiration",
            "registration",
            "replacement",
            "termination",
            "interrupt",
            "sweep",
            "refresh_catalog",
        ),
        (
            "fields @timestamp, service, cluster, message, error, reason\n"
            '| filter level in ["ERROR", "CRITICAL"] or @message like /Task timed out/\n'
            "| sort @timestamp desc\n"
            "| limit 100"
        ),
    ),
    "held back": (
        ("provision",),
        (
            "filter ispresent(report.held_back)\n"
            '| filter report.held_back != "" or report.nodes_over_ceiling > 0\n'
            "| stats count(*) as times, max(report.nodes_over_ceiling) as nodes "
            "by cluster, report.held_back"
        ),
    ),
    "one node": (
        (
            "bind",
            "emptiness",
            "expiration",
            "registration",
            "replacement",
            "termination",
            "interrupt",
        ),
        (
            "fields @timestamp, service, message, outcome, state.result, waiting_for\n"
            '| filter node = "ip-10-0-0-1.ec2.internal"\n'
            "| sort @timestamp asc"
        ),
    ),
    "one trace": (
        ("provision", "bind", "registration", "sweep", "termination"),
        (
            "fields @timestamp, service, cluster, plan_id, node, message\n"
            '| filter xray_trace_id = "1-6920d2a0-0123456789abcdef01234567"\n'
            "| sort @timestamp asc"
        ),
    ),
    "slow plans": (
        ("provision",),
        (
            'filter @type = "REPORT"\n'
            "| stats count(*) as calls, pct(@duration, 50) as p50_millis, "
            "pct(@duration, 99) as p99_millis, "
            "max(@maxMemoryUsed / 1000000) as memory_mb by bin(1h)"
        ),
    ),
    "sweep findings": (
        ("sweep",),
        (
            'filter message = "swept"\n'
            "| stats sum(findings.overdue_pods) as overdue_pods, "
            "sum(findings.unfinished_launches) as unfinished_launches, "
            "sum(findings.orphaned_instances) as orphans, "
            "sum(findings.missing_timers) as missing_timers by cluster, bin(15m)"
        ),
    ),
}


class Queries(Construct):
    """The saved queries, in the folder Dovetail."""

    def __init__(
        self, scope: Construct, construct_id: str, *, log_groups: Mapping[str, logs.ILogGroup]
    ) -> None:
        """Save the queries.

        Args:
            log_groups: By name of the function.
        """
        super().__init__(scope, construct_id)
        for name, (functions, text) in QUERIES.items():
            logs.CfnQueryDefinition(
                self,
                "".join(word.capitalize() for word in name.split()),
                name=f"Dovetail/{name}",
                log_group_names=[log_groups[function].log_group_name for function in functions],
                query_string=text,
            )
