"""The alarms of one cluster."""

from typing import Any, Final

from constructs import Construct

from infra.aws.components.alarms import AlarmFactory
from infra.aws.metrics import metric, metric_spec

_HOUR: Final = 12  # periods of five minutes


class ClusterAlarms(Construct):
    """The alarms of one cluster."""

    def __init__(
        self, scope: Construct, construct_id: str, *, cluster: str, topic_arn: str
    ) -> None:
        super().__init__(scope, construct_id)
        self._cluster = cluster
        self._alarms = AlarmFactory(self, topic_arn=topic_arn)
        self._watch_pods()
        self._watch_launches()
        self._watch_changes()
        self._watch_brakes()
        self._alarms.add_when_silent(
            "ForwarderSilent",
            f"Cluster {cluster}: the forwarder has sent no heartbeat for 15 minutes",
            page="forwarder-silent",
            metric=metric(metric_spec("Heartbeats"), cluster=cluster),
            periods=3,
        )
        self._watch(
            "ForwarderFloods",
            "its forwarder sends more messages than functions serve",
            name="MessagesDropped",
            page="forwarder-floods",
            threshold=100,
            periods=3,
            datapoints_to_alarm=2,
        )
        self._watch(
            "ClusterUnreadable",
            "sweep cannot read the cluster",
            name="SweepFailures",
            page="cluster-unreadable",
            threshold=3,
            periods=3,
        )

    def _watch_pods(self) -> None:
        self._watch(
            "PodsWaitLong",
            "a pod has waited for 10 minutes and nothing is launched for it",
            name="LongestWait",
            page="pods-wait",
            threshold=600,
            periods=2,
        )

    def _watch_launches(self) -> None:
        self._watch(
            "LaunchesFail",
            "CreateFleet calls launch no instances",
            name="FailedLaunches",
            page="aws-api-outage",
            threshold=3,
            periods=3,
        )
        self._watch(
            "NodesNeverJoin",
            "instances were terminated because they did not join the cluster in time",
            name="NodesNeverJoined",
            page="nodes-never-join",
            threshold=2,
            periods=1,
        )

    def _watch_changes(self) -> None:
        self._watch(
            "ImageStopped",
            "the first instance of a new AMI did not join; no more are launched from it",
            name="ImagesStopped",
            page="image-stopped",
            periods=1,
        )
        self._watch(
            "ReplacementsFail",
            "replacements of nodes fail repeatedly",
            name="ReplacementsGivenUp",
            page="replacements-fail",
            periods=_HOUR,
            datapoints_to_alarm=3,
        )

    def _watch_brakes(self) -> None:
        self._watch(
            "BrakesHold",
            "a brake has stopped launches for an hour",
            name="BrakesApplied",
            page="brakes-hold",
            periods=_HOUR,
        )
        self._watch(
            "DrainsBlocked",
            "a PodDisruptionBudget or a do-not-evict pod has blocked a drain for an hour",
            name="DrainsBlocked",
            page="drains-blocked",
            periods=_HOUR,
        )

    def _watch(
        self, construct_id: str, description: str, *, name: str, periods: int, **options: Any
    ) -> None:
        """Add an alarm for a metric of the cluster; a period is five minutes."""
        self._alarms.add(
            construct_id,
            f"Cluster {self._cluster}: {description}",
            metric=metric(metric_spec(name), cluster=self._cluster),
            evaluation_periods=periods,
            **{"threshold": 1, **options},
        )
