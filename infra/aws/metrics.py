"""Every metric that Dovetail writes itself, with the operator's next step.

The functions print them (shared.runtime.logs_and_metrics); dashboards and alarms read them. The
tests compare this table with the code that counts.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from infra.aws.names import METRICS_NAMESPACE

FIVE_MINUTES = Duration.minutes(5)


class DashboardGraph(StrEnum):
    """The graphs of a dashboard, one for each topic of metrics."""

    WAITING = "Pods waiting"
    BUYING = "Bought and given back"
    PLANNING = "Plans and decisions"
    TROUBLE = "What EC2 refused"
    NODES = "Nodes on their way"
    HELD = "Held back"
    FINDINGS = "What sweep found"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSpec:
    """One metric.

    Attributes:
        name: As it is written.
        service: The function that writes it.
        action: What to do when it is not as usual.
        graph: Where a dashboard shows it; None for one without a cluster, shown with the errors.
        statistic: How the values of a period become one.
    """

    name: str
    service: str
    action: str
    graph: DashboardGraph | None = None
    statistic: str = "Sum"


METRICS: Final = (
    MetricSpec(
        name="PodsWaiting",
        service="sweep",
        graph=DashboardGraph.WAITING,
        statistic="Maximum",
        action="stays above zero: read the pods' Events, which say why nothing is launched",
    ),
    MetricSpec(
        name="LongestWait",
        service="sweep",
        graph=DashboardGraph.WAITING,
        statistic="Maximum",
        action="grows: look whether provision runs (its errors, the age of the wake queue)",
    ),
    MetricSpec(
        name="PodsPlanned",
        service="provision",
        graph=DashboardGraph.WAITING,
        action="usual rate of work; zero while pods wait: check BrakesApplied and the errors",
    ),
    MetricSpec(
        name="PodsPlaced",
        service="provision",
        graph=DashboardGraph.WAITING,
        action="pods that fit on existing nodes; if kube-scheduler should have bound them, check "
        "its log",
    ),
    MetricSpec(
        name="PodsUnschedulable",
        service="provision",
        graph=DashboardGraph.WAITING,
        statistic="Maximum",
        action="fit nothing: read the pod's Event and widen the Provisioner or shrink the pod",
    ),
    MetricSpec(
        name="PodsSetAside",
        service="provision",
        graph=DashboardGraph.WAITING,
        statistic="Maximum",
        action="stays above zero: planning for these pods takes too much work; see their Events",
    ),
    MetricSpec(
        name="DollarsPerHourBought",
        service="provision",
        graph=DashboardGraph.BUYING,
        action="more than usual: read that hour's decisions; set a ceiling if it was a mistake",
    ),
    MetricSpec(
        name="DollarsPerHourReleased",
        service="termination",
        graph=DashboardGraph.BUYING,
        action="less than bought for days: nodes stay; look at drains blocked and nodes' Events",
    ),
    MetricSpec(
        name="NodesLaunched",
        service="provision",
        graph=DashboardGraph.BUYING,
        action="many, and as many terminated soon after: lengthen ttlSecondsAfterEmpty",
    ),
    MetricSpec(
        name="NodesReleased",
        service="termination",
        graph=DashboardGraph.BUYING,
        action="none for days although load falls: look at drains blocked and do-not-evict pods",
    ),
    MetricSpec(
        name="NodesReplaced",
        service="replacement",
        graph=DashboardGraph.BUYING,
        action="many a day: lengthen ttlSecondsUntilExpired, raise minimum_saving_percent",
    ),
    MetricSpec(
        name="ReplacementsGivenUp",
        service="replacement",
        graph=DashboardGraph.HELD,
        action="new nodes did not join, or pods block the old ones: read the nodes' Events",
    ),
    MetricSpec(
        name="NodesDisrupted",
        service="provision",
        graph=DashboardGraph.PLANNING,
        action="more than you want: read the Events Disrupted of the nodes, then the budgets",
    ),
    MetricSpec(
        name="PlanGap",
        service="provision",
        graph=DashboardGraph.PLANNING,
        statistic="Average",
        action="above a few per cent: allow more instance types in the Provisioner",
    ),
    MetricSpec(
        name="Launches",
        service="provision",
        graph=DashboardGraph.PLANNING,
        action="many for few nodes: allow more instance types, so that one call can serve more",
    ),
    MetricSpec(
        name="LeaseContention",
        service="provision",
        graph=DashboardGraph.PLANNING,
        action="high for long: lengthen batch_window, so that fewer invocations plan",
    ),
    MetricSpec(
        name="OfferingsRefused",
        service="provision",
        graph=DashboardGraph.TROUBLE,
        action="insufficient capacity: allow more types, zones or on-demand in the Provisioner",
    ),
    MetricSpec(
        name="FailedLaunches",
        service="provision",
        graph=DashboardGraph.TROUBLE,
        action="calls that launched nothing: read the error in provision's log, then quotas",
    ),
    MetricSpec(
        name="LaunchesRefused",
        service="provision",
        graph=DashboardGraph.TROUBLE,
        action="EC2 refuses requests: read the Events and conditions of the Provisioners",
    ),
    MetricSpec(
        name="UnknownErrorCodes",
        service="provision",
        graph=DashboardGraph.TROUBLE,
        action="codes that Dovetail does not know: look them up in EC2's list, and report them",
    ),
    MetricSpec(
        name="Throttles",
        service="provision",
        graph=DashboardGraph.TROUBLE,
        action="raise the account's CreateFleet rate at AWS, then fleet_burst and fleet_per_second",
    ),
    MetricSpec(
        name="Interruptions",
        service="interrupt",
        graph=DashboardGraph.TROUBLE,
        action="instances that AWS or another client stopped or terminated; frequent: allow more "
        "types, or on-demand for pods that must not move",
    ),
    MetricSpec(
        name="NodesInitialized",
        service="bind",
        graph=DashboardGraph.NODES,
        action="fewer than launched: check the instances' console output and access entries",
    ),
    MetricSpec(
        name="NodesNeverJoined",
        service="registration",
        graph=DashboardGraph.NODES,
        action="instances terminated because they did not join in time: read the alarm's runbook",
    ),
    MetricSpec(
        name="ImagesStopped",
        service="registration",
        graph=DashboardGraph.NODES,
        action="the first instance of a new AMI did not join: read the runbook, then pin the AMI "
        "or correct what it needs",
    ),
    MetricSpec(
        name="PodsBoundAtReady",
        service="bind",
        graph=DashboardGraph.NODES,
        action="pods that waited for their node; with binding_policy early it should be few",
    ),
    MetricSpec(
        name="PodsLeftToScheduler",
        service="bind",
        graph=DashboardGraph.NODES,
        action="pods that only kube-scheduler may place: see that they are running",
    ),
    MetricSpec(
        name="BindFailures",
        service="bind",
        graph=DashboardGraph.NODES,
        action="pods already bound or deleted when their node became Ready: many mean that another "
        "scheduler serves the same pods",
    ),
    MetricSpec(
        name="PodsRejected",
        service="provision",
        graph=DashboardGraph.NODES,
        action="a kubelet rejected pods, or a taint was added to their node: read its Events; a "
        "second time within the hour, launches for these pods stop",
    ),
    MetricSpec(
        name="CeilingUsed",
        service="provision",
        graph=DashboardGraph.HELD,
        statistic="Maximum",
        action="at 80 percent: find out what was launched, or raise the ceiling before 100",
    ),
    MetricSpec(
        name="BrakesApplied",
        service="provision",
        graph=DashboardGraph.HELD,
        action="a brake holds: release it or correct what it guards against",
    ),
    MetricSpec(
        name="DrainsBlocked",
        service="termination",
        graph=DashboardGraph.HELD,
        action="a PodDisruptionBudget or do-not-evict pod holds a drain: the node's Event names it",
    ),
    MetricSpec(
        name="SweepFindings",
        service="sweep",
        graph=DashboardGraph.FINDINGS,
        action="steady findings: events are lost, look at forwarder and dead letters",
    ),
    MetricSpec(
        name="SweepFailures",
        service="sweep",
        graph=DashboardGraph.FINDINGS,
        action="the cluster cannot be read: look at its endpoint and access entries",
    ),
    MetricSpec(
        name="Heartbeats",
        service="heartbeat",
        graph=DashboardGraph.FINDINGS,
        action="forwarder silence: look at the Deployment dovetail-forwarder of that cluster",
    ),
    MetricSpec(
        name="MessagesDropped",
        service="heartbeat",
        graph=DashboardGraph.FINDINGS,
        action="the cluster's forwarder, or who has its role, sends too many: look at the pod",
    ),
    MetricSpec(
        name="SweepRounds",
        service="sweep",
        action="fewer than one a minute: look whether the rule that starts sweep is enabled",
    ),
    MetricSpec(
        name="DeadLetters",
        service="provision",
        action="an invalid message was set aside: read it in the queue, then redrive or delete it",
    ),
    MetricSpec(
        name="CatalogInstanceTypes",
        service="refresh_catalog",
        statistic="Minimum",
        action="falls: the Region's offers were read in part; run refresh_catalog again",
    ),
    MetricSpec(
        name="CatalogFallbacks",
        service="provision",
        action="no usable catalogue of this Region: run refresh_catalog and read its log",
    ),
    MetricSpec(
        name="ForeignLedgerRows",
        service="provision",
        action="another program writes to the ledger: find its role and remove the permission",
    ),
)


def metric(spec: MetricSpec, *, cluster: str = "") -> cloudwatch.Metric:
    """Return the CloudWatch metric of one cluster, or of none, for graphs and alarms."""
    return cloudwatch.Metric(
        namespace=METRICS_NAMESPACE,
        metric_name=spec.name,
        dimensions_map={**({"Cluster": cluster} if cluster else {}), "service": spec.service},
        statistic=spec.statistic,
        period=FIVE_MINUTES,
    )


def metric_spec(name: str) -> MetricSpec:
    """Return the metric of a name."""
    return next(spec for spec in METRICS if spec.name == name)
