"""Alarms for the ways one cluster can be served badly."""

from typing import Any

from constructs import Construct

from infra.aws.components.alarms import AlarmBell
from infra.aws.metrics import metric, named

_HOUR: int = 12  # periods of five minutes


class ClusterAlarms(Construct):
    """What concerns one cluster."""

    def __init__(
        self, scope: Construct, construct_id: str, *, cluster: str, topic_arn: str
    ) -> None:
        super().__init__(scope, construct_id)
        self._cluster = cluster
        self._bell = AlarmBell(self, topic_arn=topic_arn)
        self._watch_pods()
        self._watch_launches()
        self._watch_changes()
        self._watch_brakes()
        self._bell.ring_when_silent(
            "ForwarderSilent",
            f"The forwarder of {cluster} has sent no heartbeat for a quarter of an hour",
            page="forwarder-silent",
            metric=metric(named("Heartbeats"), cluster=cluster),
            periods=3,
        )
        self._watch(
            "ClusterUnreadable",
            f"Sweep cannot read {cluster}",
            name="SweepFailures",
            page="cluster-unreadable",
            threshold=3,
            periods=3,
        )

    def _watch_pods(self) -> None:
        self._watch(
            "PodsWaitLong",
            "A pod has waited for ten minutes and nothing is bought for it",
            name="LongestWait",
            page="pods-wait",
            threshold=600,
            periods=2,
        )

    def _watch_launches(self) -> None:
        self._watch(
            "LaunchesFail",
            "EC2 launches nothing of what is asked for",
            name="FailedLaunches",
            page="aws-api-outage",
            threshold=3,
            periods=3,
        )
        self._watch(
            "NodesNeverJoin",
            "Machines were bought and given up, for they did not join the cluster",
            name="NodesNeverJoined",
            page="nodes-never-join",
            threshold=2,
            periods=1,
        )

    def _watch_changes(self) -> None:
        self._watch(
            "ImageStopped",
            "The first machine of a new AMI did not join; no more are launched from it",
            name="ImagesStopped",
            page="image-stopped",
            periods=1,
        )
        self._watch(
            "ReplacementsFail",
            "Replacements of nodes come to nothing again and again",
            name="ReplacementsGivenUp",
            page="replacements-fail",
            periods=_HOUR,
            datapoints_to_alarm=3,
        )

    def _watch_brakes(self) -> None:
        self._watch(
            "BrakesHold",
            "A brake has held launches back for an hour",
            name="BrakesApplied",
            page="brakes-hold",
            periods=_HOUR,
        )
        self._watch(
            "DrainsBlocked",
            "A drain has been held for an hour by a PodDisruptionBudget or a do-not-evict pod",
            name="DrainsBlocked",
            page="drains-blocked",
            periods=_HOUR,
        )

    def _watch(
        self, construct_id: str, description: str, *, name: str, periods: int, **options: Any
    ) -> None:
        """Ring when a metric of the cluster is amiss for some periods of five minutes."""
        self._bell.ring(
            construct_id,
            description,
            metric=metric(named(name), cluster=self._cluster),
            evaluation_periods=periods,
            **{"threshold": 1, **options},
        )
