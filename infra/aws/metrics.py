"""Every metric that Dovetail writes itself, with the operator's next step.

The functions print them (shared.runtime.observability); dashboards and alarms read them. The
tests hold this table against the code that counts.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from infra.aws.names import METRICS_NAMESPACE

FIVE_MINUTES = Duration.minutes(5)


class Topic(StrEnum):
    """What a metric is about: one graph of a dashboard each."""

    WAITING = "Pods waiting"
    BUYING = "Bought and given back"
    PLANNING = "Plans and decisions"
    TROUBLE = "What EC2 refused"
    NODES = "Nodes on their way"
    HELD = "Held back"
    FINDINGS = "What sweep found"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricPlan:
    """One metric.

    Attributes:
        name: As it is written.
        service: The function that writes it.
        action: What to do when it is not as usual.
        topic: Where a dashboard shows it; None for one of no cluster, shown with the errors.
        statistic: How the values of a period become one.
    """

    name: str
    service: str
    action: str
    topic: Topic | None = None
    statistic: str = "Sum"


METRICS: Final = (
    MetricPlan(
        name="PodsWaiting",
        service="sweep",
        topic=Topic.WAITING,
        statistic="Maximum",
        action="stays above zero: read the pods' Events, which say why nothing is launched",
    ),
    MetricPlan(
        name="LongestWait",
        service="sweep",
        topic=Topic.WAITING,
        statistic="Maximum",
        action="grows: look whether provision runs (its errors, the age of the wake queue)",
    ),
    MetricPlan(
        name="PodsPlanned",
        service="provision",
        topic=Topic.WAITING,
        action="usual rate of work; zero while pods wait: check BrakesApplied and the errors",
    ),
    MetricPlan(
        name="PodsPlaced",
        service="provision",
        topic=Topic.WAITING,
        action="pods that fit on existing nodes; if kube-scheduler should have bound them, check "
        "its log",
    ),
    MetricPlan(
        name="PodsUnschedulable",
        service="provision",
        topic=Topic.WAITING,
        statistic="Maximum",
        action="fit nothing: read the pod's Event and widen the Provisioner or shrink the pod",
    ),
    MetricPlan(
        name="PodsSetAside",
        service="provision",
        topic=Topic.WAITING,
        statistic="Maximum",
        action="stays above zero: planning for these pods takes too much work; see their Events",
    ),
    MetricPlan(
        name="DollarsPerHourBought",
        service="provision",
        topic=Topic.BUYING,
        action="more than usual: read that hour's decisions; set a ceiling if it was a mistake",
    ),
    MetricPlan(
        name="DollarsPerHourReleased",
        service="termination",
        topic=Topic.BUYING,
        action="less than bought for days: nodes stay; look at drains blocked and nodes' Events",
    ),
    MetricPlan(
        name="NodesLaunched",
        service="provision",
        topic=Topic.BUYING,
        action="many, and as many terminated soon after: lengthen ttlSecondsAfterEmpty",
    ),
    MetricPlan(
        name="NodesReleased",
        service="termination",
        topic=Topic.BUYING,
        action="none for days although load falls: look at drains blocked and do-not-evict pods",
    ),
    MetricPlan(
        name="NodesReplaced",
        service="replacement",
        topic=Topic.BUYING,
        action="many a day: lengthen ttlSecondsUntilExpired, raise minimum_saving_percent",
    ),
    MetricPlan(
        name="ReplacementsGivenUp",
        service="replacement",
        topic=Topic.HELD,
        action="new nodes did not join, or pods block the old ones: read the nodes' Events",
    ),
    MetricPlan(
        name="NodesDisrupted",
        service="provision",
        topic=Topic.PLANNING,
        action="more than you want: read the Events Disrupted of the nodes, then the budgets",
    ),
    MetricPlan(
        name="PlanGap",
        service="provision",
        topic=Topic.PLANNING,
        statistic="Average",
        action="above a few per cent: allow more instance types in the Provisioner",
    ),
    MetricPlan(
        name="Launches",
        service="provision",
        topic=Topic.PLANNING,
        action="many for few nodes: allow more instance types, so that one call can serve more",
    ),
    MetricPlan(
        name="LeaseContention",
        service="provision",
        topic=Topic.PLANNING,
        action="high for long: lengthen batch_window, so that fewer invocations plan",
    ),
    MetricPlan(
        name="OfferingsRefused",
        service="provision",
        topic=Topic.TROUBLE,
        action="insufficient capacity: allow more types, zones or on-demand in the Provisioner",
    ),
    MetricPlan(
        name="FailedLaunches",
        service="provision",
        topic=Topic.TROUBLE,
        action="calls that launched nothing: read the error in provision's log, then quotas",
    ),
    MetricPlan(
        name="LaunchesRefused",
        service="provision",
        topic=Topic.TROUBLE,
        action="EC2 refuses requests: read the Events and conditions of the Provisioners",
    ),
    MetricPlan(
        name="UnknownErrorCodes",
        service="provision",
        topic=Topic.TROUBLE,
        action="codes that Dovetail does not know: look them up in EC2's list, and report them",
    ),
    MetricPlan(
        name="Throttles",
        service="provision",
        topic=Topic.TROUBLE,
        action="raise the account's CreateFleet rate at AWS, then fleet_burst and fleet_per_second",
    ),
    MetricPlan(
        name="Interruptions",
        service="interrupt",
        topic=Topic.TROUBLE,
        action="instances that AWS or another client stopped or terminated; frequent: allow more "
        "types, or on-demand for pods that must not move",
    ),
    MetricPlan(
        name="NodesInitialized",
        service="bind",
        topic=Topic.NODES,
        action="fewer than launched: check the instances' console output and access entries",
    ),
    MetricPlan(
        name="NodesNeverJoined",
        service="registration",
        topic=Topic.NODES,
        action="instances terminated because they did not join in time: read the alarm's runbook",
    ),
    MetricPlan(
        name="ImagesStopped",
        service="registration",
        topic=Topic.NODES,
        action="the first instance of a new AMI did not join: read the runbook, then pin the AMI "
        "or correct what it needs",
    ),
    MetricPlan(
        name="PodsBoundAtReady",
        service="bind",
        topic=Topic.NODES,
        action="pods that waited for their node; with binding_policy early it should be few",
    ),
    MetricPlan(
        name="PodsLeftToScheduler",
        service="bind",
        topic=Topic.NODES,
        action="pods that only kube-scheduler may place: see that they are running",
    ),
    MetricPlan(
        name="BindFailures",
        service="bind",
        topic=Topic.NODES,
        action="pods already bound or deleted when their node became Ready: many mean that another "
        "scheduler serves the same pods",
    ),
    MetricPlan(
        name="PodsRejected",
        service="provision",
        topic=Topic.NODES,
        action="a kubelet rejected pods, or a taint was added to their node: read its Events; a "
        "second time within the hour, launches for these pods stop",
    ),
    MetricPlan(
        name="CeilingUsed",
        service="provision",
        topic=Topic.HELD,
        statistic="Maximum",
        action="at 80 percent: find out what was launched, or raise the ceiling before 100",
    ),
    MetricPlan(
        name="BrakesApplied",
        service="provision",
        topic=Topic.HELD,
        action="a brake holds: release it or correct what it guards against",
    ),
    MetricPlan(
        name="DrainsBlocked",
        service="termination",
        topic=Topic.HELD,
        action="a PodDisruptionBudget or do-not-evict pod holds a drain: the node's Event names it",
    ),
    MetricPlan(
        name="SweepFindings",
        service="sweep",
        topic=Topic.FINDINGS,
        action="steady findings: events are lost, look at forwarder and dead letters",
    ),
    MetricPlan(
        name="SweepFailures",
        service="sweep",
        topic=Topic.FINDINGS,
        action="the cluster cannot be read: look at its endpoint and access entries",
    ),
    MetricPlan(
        name="Heartbeats",
        service="heartbeat",
        topic=Topic.FINDINGS,
        action="forwarder silence: look at the Deployment dovetail-forwarder of that cluster",
    ),
    MetricPlan(
        name="MessagesDropped",
        service="heartbeat",
        topic=Topic.FINDINGS,
        action="the cluster's forwarder, or who has its role, sends too many: look at the pod",
    ),
    MetricPlan(
        name="SweepRounds",
        service="sweep",
        action="fewer than one a minute: look whether the rule that starts sweep is enabled",
    ),
    MetricPlan(
        name="DeadLetters",
        service="provision",
        action="an invalid message was set aside: read it in the queue, then redrive or delete it",
    ),
    MetricPlan(
        name="CatalogInstanceTypes",
        service="refresh_catalog",
        statistic="Minimum",
        action="falls: the Region's offers were read in part; run refresh_catalog again",
    ),
    MetricPlan(
        name="CatalogFallbacks",
        service="provision",
        action="no usable catalogue of this Region: run refresh_catalog and read its log",
    ),
    MetricPlan(
        name="ForeignLedgerRows",
        service="provision",
        action="another program writes to the ledger: find its role and remove the permission",
    ),
)


def metric(plan: MetricPlan, *, cluster: str = "") -> cloudwatch.Metric:
    """Return a metric of one cluster, or of none, as graphs and alarms take it."""
    return cloudwatch.Metric(
        namespace=METRICS_NAMESPACE,
        metric_name=plan.name,
        dimensions_map={**({"Cluster": cluster} if cluster else {}), "service": plan.service},
        statistic=plan.statistic,
        period=FIVE_MINUTES,
    )


def named(name: str) -> MetricPlan:
    """Return one of the metrics."""
    return next(metric_plan for metric_plan in METRICS if metric_plan.name == name)
