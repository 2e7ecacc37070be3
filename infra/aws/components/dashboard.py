"""What is going on in one cluster, on one page."""

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra.aws.functions import Timer
from infra.aws.metrics import METRICS, Topic, metric
from infra.aws.names import cluster_stack_name, function_name

_WIDTH = 12
_GRAPH_HEIGHT = 6
_MINUTE = Duration.minutes(1)


class ClusterDashboard(Construct):
    """One graph per topic, the control plane's health, and under it what each metric asks for."""

    def __init__(self, scope: Construct, construct_id: str, *, cluster: str) -> None:
        super().__init__(scope, construct_id)
        shown = [
            (topic, [metric_plan for metric_plan in METRICS if metric_plan.topic == topic])
            for topic in Topic
            if any(metric_plan.topic == topic for metric_plan in METRICS)
        ]
        graphs = [
            cloudwatch.GraphWidget(
                title=topic.value,
                width=_WIDTH,
                height=_GRAPH_HEIGHT,
                left=[metric(plan, cluster=cluster) for plan in plans],
            )
            for topic, plans in shown
        ]
        graphs.append(_health())
        told = [*(plan for _, plans in shown for plan in plans)]
        told += [metric_plan for metric_plan in METRICS if metric_plan.topic is None]
        actions = "\n".join(
            f"| {metric_plan.name} | {metric_plan.action} |" for metric_plan in told
        )
        explanation = cloudwatch.TextWidget(
            markdown=f"| metric | what to do |\n|---|---|\n{actions}", width=24, height=16
        )
        cloudwatch.Dashboard(
            self,
            "Dashboard",
            # Two clusters may have one name in two Regions; dashboards are shown for one Region.
            dashboard_name=cluster_stack_name(cluster),
            default_interval=Duration.hours(3),
            widgets=[
                *([*graphs[first : first + 2]] for first in range(0, len(graphs), 2)),
                [explanation],
            ],
        )


def _health() -> cloudwatch.GraphWidget:
    """Return the graph of what all clusters share: errors, and metrics of no cluster."""
    errors = [
        cloudwatch.Metric(
            namespace="AWS/Lambda",
            metric_name="Errors",
            dimensions_map={"FunctionName": function_name(name)},
            label=f"{name} errors",
            statistic="Sum",
            period=_MINUTE,
        )
        for name in ("provision", "bind", "sweep", *(timer.value for timer in Timer))
    ]
    return cloudwatch.GraphWidget(
        title="Errors of the functions (all clusters)",
        width=_WIDTH,
        height=_GRAPH_HEIGHT,
        left=[
            *errors,
            *(metric(metric_plan) for metric_plan in METRICS if metric_plan.topic is None),
        ],
    )
