"""DescribeInstances with the filters, pages and blind moments of the real one."""

import copy
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError, InvalidInstanceIdError, InvalidParameterCombination
from moto.ec2.models.core import TaggedEC2Resource
from moto.ec2.models.instances import InstanceBackend
from moto.ec2.responses.instances import InstanceResponse

from infra.local.aws.ec2.world import World
from infra.local.aws.moto_patches import Repairs

PAGE: Final = 1000

_ATTRIBUTES: Final[Mapping[str, str]] = {
    "architecture": "architecture",
    "availability-zone": "placement.zone",
    "client-token": "client_token",
    "image-id": "image_id",
    "instance-id": "id",
    "instance-lifecycle": "lifecycle",
    "instance-state-code": "state_code",
    "instance-state-name": "state",
    "instance-type": "instance_type",
    "key-name": "key_name",
    "owner-id": "owner_id",
    "private-dns-name": "private_dns_name",
    "private-ip-address": "private_ip_address",
    "network-interface.private-dns-name": "private_dns_name",
    "spot-instance-request-id": "spot_instance_request_id",
    "state-reason-code": "state_reason.code",
    "subnet-id": "subnet_id",
    "vpc-id": "vpc_id",
}
_OTHERS: Final = ("tag-key", "tag-value", "iam-instance-profile.arn")
_GROUPS: Final = ("group-id", "instance.group-id", "network-interface.group-id")


def _values(instance: Any, name: str) -> tuple[str, ...]:
    """What a filter looks at: no values means that it cannot match."""
    tags: Mapping[str, str] = instance.ec2_backend.tags.get(instance.id, {})
    if name.startswith("tag:"):
        found = tags.get(name.removeprefix("tag:"))
        return () if found is None else (found,)
    if name == "tag-key":
        return tuple(tags)
    if name == "tag-value":
        return tuple(tags.values())
    if name in _GROUPS:
        return tuple(group.id for group in instance.security_groups)
    if name == "iam-instance-profile.arn":
        return ((instance.iam_instance_profile or {}).get("Arn", ""),)
    value = instance
    for part in _ATTRIBUTES[name].split("."):
        value = getattr(value, part, None)
    return () if value is None else (str(value),)


def matches(instance: Any, filters: Mapping[str, Sequence[str]]) -> bool:
    """Whether an instance passes all filters, each known; values may hold `*` and `?`."""
    return all(
        any(fnmatchcase(value, wanted) for value in _values(instance, name) for wanted in wanteds)
        for name, wanteds in filters.items()
    )


def check_filters(names: Iterable[str]) -> None:
    for name in names:
        if name.startswith("tag:") or name in (*_ATTRIBUTES, *_GROUPS, *_OTHERS):
            continue
        raise EC2ClientError("InvalidParameterValue", f"The filter '{name}' is invalid")


def _page(response: Any, found: list[tuple[Any, Any]]) -> tuple[list[tuple[Any, Any]], str | None]:
    size = int(response._get_param("MaxResults") or PAGE)
    token = response._get_param("NextToken")
    start = 0
    if token:
        ids = [instance.id for _, instance in found]
        if token not in ids:
            raise EC2ClientError("InvalidNextToken", f"The token '{token}' is invalid")
        start = ids.index(token)
    rest = found[start + size :]
    return found[start : start + size], rest[0][1].id if rest else None


def _grouped(rows: Sequence[tuple[Any, Any]]) -> list[Any]:
    groups: dict[str, Any] = {}
    for reservation, instance in rows:
        if reservation.id not in groups:
            groups[reservation.id] = copy.copy(reservation)
            groups[reservation.id].instances = []
        groups[reservation.id].instances.append(instance)
    return list(groups.values())


def repair(repairs: Repairs, world: World) -> None:
    """Put our DescribeInstances in place, and a way to tags that does not read all of them."""

    def describe_instances(self: Any) -> ActionResult:
        self.error_on_dryrun()
        wanted = tuple(self._get_param("InstanceIds", []) or ())
        if wanted and self._get_param("MaxResults"):
            raise InvalidParameterCombination(
                "The parameter instancesSet cannot be used with the parameter maxResults"
            )
        filters = self._filters_from_querystring()
        check_filters(filters)
        with world.lock:
            rows = [
                (reservation, instance)
                for reservation in self.ec2_backend.reservations.values()
                for instance in reservation.instances
                if world.seen(instance)
            ]
        missing = sorted(set(wanted) - {instance.id for _, instance in rows})
        if missing:
            raise InvalidInstanceIdError(missing)
        if wanted:
            rows = [row for row in rows if row[1].id in wanted]
        rows, token = _page(self, [row for row in rows if matches(row[1], filters)])
        return ActionResult({"Reservations": _grouped(rows), "NextToken": token})

    def get_tags(self: Any) -> list[dict[str, str]]:
        own = self.ec2_backend.tags.get(self.id, {}) if self.id else {}
        return [{"resource_id": self.id, "key": key, "value": own[key]} for key in own]

    repairs.replace(InstanceResponse, "describe_instances", describe_instances)
    repairs.replace(TaggedEC2Resource, "get_tags", get_tags)
    repairs.stock(InstanceBackend, "describe_instances")
