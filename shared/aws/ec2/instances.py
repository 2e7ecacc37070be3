"""The instances and the EKS endpoint of one cluster, under one of its roles."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from typing_extensions import override

from shared.aws.errors import translated
from shared.aws.session import Session
from shared.aws.ttl_cache import TtlCache
from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType, OfferingKey
from shared.model.ec2.launches import Instance
from shared.model.errors import NotFoundError
from shared.ports import Clock, ClusterEndpoint, Instances

# Images and the cluster's version change a few times a month.
SLOW_SPAN: Final = timedelta(minutes=10)
# Ids in one request.
PAGE: Final = 100
_NOT_TERMINATED: Final = ["pending", "running", "shutting-down", "stopped", "stopping"]


class Ec2Instances(Instances):
    """Implements shared.ports.Instances.

    Keep it for as long as the process: it has a cache.

    Args:
        session: Session in the cluster's Region.
        cluster: Name of the cluster; all resources that are created or changed have it in a tag.
        role: ARN of one of the cluster's roles; empty for the process's own.
        clock: Clock of the cache.
    """

    def __init__(self, session: Session, *, cluster: str, role: str, clock: Clock) -> None:
        self._session = session
        self._cluster = cluster
        self._role = role
        self._ours = {keys.TAG_CLUSTER: cluster, f"kubernetes.io/cluster/{cluster}": "owned"}
        self._endpoints: TtlCache[str, ClusterEndpoint] = TtlCache(SLOW_SPAN, clock)

    def endpoint(self) -> ClusterEndpoint:
        """Return what instances need to join this cluster; at most ten minutes old.

        Raises:
            NotFoundError: If EKS knows no such cluster.
        """
        return self._endpoints.get(self._cluster, self._describe_cluster)

    @override
    def instances(self, instance_ids: Sequence[str]) -> tuple[Instance, ...]:
        # By filter, not by id: one unknown id would fail the whole request.
        rows = [
            row
            for ids in paged(instance_ids, PAGE)
            for row in self._instances([{"Name": "instance-id", "Values": ids}])
        ]
        return _sorted(rows)

    @override
    def tagged_instances(self, tags: Mapping[str, str]) -> tuple[Instance, ...]:
        state = {"Name": "instance-state-name", "Values": _NOT_TERMINATED}
        return _sorted(self._instances([*tag_filters({**tags, **self._ours}), state]))

    @override
    def terminate(self, instance_ids: Sequence[str]) -> None:
        for ids in paged(instance_ids, PAGE):
            try:
                self._terminate(ids)
            except NotFoundError:
                # One unknown id fails the call: terminate those EC2 knows, one call for each.
                for instance in self.instances(ids):
                    self._terminate_one(instance.instance_id)

    # --- the calls

    def _client(self, service: str) -> Any:
        return self._session.client(service, role=self._role)

    def _pages(self, operation: str, result: str, **request: Any) -> Iterable[Any]:
        """Yield the rows of all pages of an EC2 description."""
        call: Callable[..., Any] = getattr(self._client("ec2"), operation)
        while True:
            with translated(f"ec2 {operation}"):
                page = call(**request)
            yield from page[result]
            if not page.get("NextToken"):
                return
            request["NextToken"] = page["NextToken"]

    def _describe_cluster(self) -> ClusterEndpoint:
        with translated("eks DescribeCluster"):
            found = self._client("eks").describe_cluster(name=self._cluster)["cluster"]
        network = found.get("kubernetesNetworkConfig", {})
        version = "6" if network.get("ipFamily") == "ipv6" else "4"
        return ClusterEndpoint(
            name=self._cluster,
            endpoint=found["endpoint"],
            certificate_authority=found["certificateAuthority"]["data"],
            version=found["version"],
            service_cidr=network.get(f"serviceIpv{version}Cidr", ""),
        )

    def _instances(self, filters: list[dict[str, Any]]) -> list[Any]:
        pages = self._pages("describe_instances", "Reservations", Filters=filters)
        return [row for reservation in pages for row in reservation["Instances"]]

    def _terminate(self, ids: Sequence[str]) -> None:
        with translated("ec2 TerminateInstances"):
            self._client("ec2").terminate_instances(InstanceIds=list(ids))

    def _terminate_one(self, instance_id: str) -> None:
        try:
            self._terminate([instance_id])
        except NotFoundError:
            return


def tags_of(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the tags of a resource."""
    return {tag["Key"]: tag["Value"] for tag in row.get("Tags", ())}


def instance_of(row: Mapping[str, Any]) -> Instance:
    """Return the instance of a row of DescribeInstances."""
    spot = row.get("InstanceLifecycle") == "spot"
    return Instance(
        instance_id=row["InstanceId"],
        state=row["State"]["Name"],
        offering=OfferingKey(
            instance_type=row["InstanceType"],
            zone=row["Placement"]["AvailabilityZone"],
            capacity_type=CapacityType.SPOT if spot else CapacityType.ON_DEMAND,
        ),
        private_dns_name=row.get("PrivateDnsName", ""),
        image_id=row.get("ImageId", ""),
        launched_at=_utc(row.get("LaunchTime")),
        tags=tags_of(row),
        state_reason=row.get("StateReason", {}).get("Code", ""),
        state_message=row.get("StateReason", {}).get("Message", ""),
    )


def tag_filters(tags: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return filters for resources that have all these tags, sorted by key."""
    return [{"Name": f"tag:{key}", "Values": [value]} for key, value in sorted(tags.items())]


def paged(values: Sequence[str], size: int) -> Iterable[list[str]]:
    """Yield the distinct values, sorted, in lists of at most `size`."""
    ordered = sorted(set(values))
    for start in range(0, len(ordered), size):
        yield ordered[start : start + size]


def _utc(moment: datetime | None) -> datetime | None:
    return moment.astimezone(UTC) if moment is not None else None


def _sorted(rows: Iterable[Any]) -> tuple[Instance, ...]:
    return tuple(sorted(map(instance_of, rows), key=lambda entry: entry.instance_id))
