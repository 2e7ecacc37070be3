"""The CloudWatch dashboard of one cluster."""

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra.aws.functions import TimerStateMachine
from infra.aws.metrics import METRICS, DashboardGraph, metric
from infra.aws.names import cluster_stack_name, function_name

_WIDTH = 12
_GRAPH_HEIGHT = 6
_MINUTE = Duration.minutes(1)


class ClusterDashboard(Construct):
    """One graph per topic, the control plane's health, and below what to do about each metric."""

    def __init__(self, scope: Construct, construct_id: str, *, cluster: str) -> None:
        super().__init__(scope, construct_id)
        specs_by_graph = [
            (graph, [spec for spec in METRICS if spec.graph == graph])
            for graph in DashboardGraph
            if any(spec.graph == graph for spec in METRICS)
        ]
        graphs = [
            cloudwatch.GraphWidget(
                title=graph.value,
                width=_WIDTH,
                height=_GRAPH_HEIGHT,
                left=[metric(spec, cluster=cluster) for spec in graph_specs],
            )
            for graph, graph_specs in specs_by_graph
        ]
        graphs.append(_health())
        specs = [*(spec for _, graph_specs in specs_by_graph for spec in graph_specs)]
        specs += [spec for spec in METRICS if spec.graph is None]
        actions = "\n".join(f"| {spec.name} | {spec.action} |" for spec in specs)
        explanation = cloudwatch.TextWidget(
            markdown=f"| metric | what to do |\n|---|---|\n{actions}", width=24, height=16
        )
        cloudwatch.Dashboard(
            self,
            "Dashboard",
            # Clusters in two Regions may share a name; dashboards are shown for one Region.
            dashboard_name=cluster_stack_name(cluster),
            default_interval=Duration.hours(3),
            widgets=[
                *([*graphs[first : first + 2]] for first in range(0, len(graphs), 2)),
                [explanation],
            ],
        )


def _health() -> cloudwatch.GraphWidget:
    """Return the graph of what all clusters share: errors, and metrics without a cluster."""
    errors = [
        cloudwatch.Metric(
            namespace="AWS/Lambda",
            metric_name="Errors",
            dimensions_map={"FunctionName": function_name(name)},
            label=f"{name} errors",
            statistic="Sum",
            period=_MINUTE,
        )
        for name in (
            "provision",
            "bind",
            "sweep",
            *(state_machine.value for state_machine in TimerStateMachine),
        )
    ]
    return cloudwatch.GraphWidget(
        title="Errors of the functions (all clusters)",
        width=_WIDTH,
        height=_GRAPH_HEIGHT,
        left=[
            *errors,
            *(metric(spec) for spec in METRICS if spec.graph is None),
        ],
    )
