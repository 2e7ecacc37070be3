"""Translates requests and answers of EC2 from and to values of the model.

Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateFleet.html,
API_CreateFleetError.html and API_Instance.html there (2026-08).
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from shared.aws.ec2.instances import tags_of
from shared.model.ec2.instance_types import CapacityType, OfferingKey
from shared.model.ec2.launches import FleetAnswer, FleetError, FleetInstance
from shared.model.ec2.selectors import ANY_VALUE, SelectorTerm
from shared.ports import MachineImage

Row = Mapping[str, Any]
IMAGE_ID: Final = "image-id"
# EC2's filter by name, by its filter by id.
_NAMES: Final = {IMAGE_ID: "name", "group-id": "group-name"}
_ARCHITECTURES: Final = {"x86_64": "amd64", "arm64": "arm64"}


def subnets_of(request: Row) -> tuple[str, ...]:
    """Return the subnets that a CreateFleet request names, sorted."""
    return tuple(
        sorted(
            {override["SubnetId"] for override in _overrides(request) if override.get("SubnetId")}
        )
    )


def capacity_type_of(request: Row) -> CapacityType:
    """Return the capacity type of a CreateFleet request."""
    target = request.get("TargetCapacitySpecification", {})
    return CapacityType(target.get("DefaultTargetCapacityType", CapacityType.ON_DEMAND))


def fleet_answer(response: Row, request: Row, zones: Mapping[str, str]) -> FleetAnswer:
    """Return the answer of CreateFleet.

    Args:
        zones: Subnet id to zone, for all subnets of the request.
    """
    bought_as = capacity_type_of(request)
    instances = sorted(
        (
            FleetInstance(instance_id=entry, offering=_offering(_override(row), zones, kind, row))
            for row in response.get("Instances", ())
            for kind in (_capacity_type(row, bought_as),)
            for entry in row.get("InstanceIds", ())
        ),
        key=lambda entry: entry.instance_id,
    )
    errors = []
    for row in response.get("Errors", ()):
        override = _override(row)
        offering = _offering(override, zones, _capacity_type(row, bought_as))
        errors.append(
            FleetError(
                code=str(row.get("ErrorCode", "")),
                message=str(row.get("ErrorMessage", "")),
                offering=offering if offering.instance_type else None,
                subnet_id=str(override.get("SubnetId", "")),
            )
        )
    return FleetAnswer(
        fleet_id=str(response.get("FleetId", "")),
        instances=tuple(instances),
        errors=tuple(dict.fromkeys(errors)),
    )


def term_filters(term: SelectorTerm, id_filter: str) -> list[dict[str, Any]]:
    """Return the filters of a term by tags, ids and names, tags sorted; all must hold.

    Args:
        id_filter: EC2's name of the filter by id, such as `subnet-id`.
    """
    filters: list[dict[str, Any]] = []
    for key, values in sorted(term.tags.items()):
        if values == (ANY_VALUE,):
            filters.append({"Name": "tag-key", "Values": [key]})
        else:
            filters.append({"Name": f"tag:{key}", "Values": list(values)})
    if term.ids:
        filters.append({"Name": id_filter, "Values": list(term.ids)})
    if term.names:
        filters.append({"Name": _NAMES[id_filter], "Values": list(term.names)})
    return filters


def image_request(term: SelectorTerm) -> dict[str, Any]:
    """Return the DescribeImages request of a term whose parameters are replaced by ids.

    It includes deprecated images, which are used only where there is no other.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeImages.html (2026).
    """
    filters = [*term_filters(term, IMAGE_ID), {"Name": "state", "Values": ["available"]}]
    request: dict[str, Any] = {"Filters": filters, "IncludeDeprecated": True}
    if term.owners:
        request["Owners"] = list(term.owners)
    return request


def image_of(row: Row, now: datetime) -> MachineImage | None:
    """Return an AMI of a row of DescribeImages, None if no node can boot its architecture."""
    architecture = _ARCHITECTURES.get(row.get("Architecture", ""))
    if architecture is None:
        return None
    ends = str(row.get("DeprecationTime") or "")
    return MachineImage(
        image_id=row["ImageId"],
        name=row.get("Name", ""),
        architecture=architecture,
        created_at=datetime.fromisoformat(row["CreationDate"]).astimezone(UTC),
        deprecated=bool(ends) and datetime.fromisoformat(ends) <= now,
        tags=tags_of(row),
    )


def _overrides(request: Row) -> list[Row]:
    return [
        override
        for config in request.get("LaunchTemplateConfigs", ())
        for override in config.get("Overrides", ())
    ]


def _override(row: Row) -> Row:
    overrides: Row = row.get("LaunchTemplateAndOverrides", {}).get("Overrides", {})
    return overrides


def _capacity_type(row: Row, default: CapacityType) -> CapacityType:
    return CapacityType(row["Lifecycle"]) if row.get("Lifecycle") else default


def _offering(
    override: Row, zones: Mapping[str, str], capacity_type: CapacityType, row: Row | None = None
) -> OfferingKey:
    named = (row or {}).get("InstanceType") or override.get("InstanceType", "")
    zone = override.get("AvailabilityZone") or zones.get(override.get("SubnetId", ""), "")
    return OfferingKey(instance_type=named, zone=zone, capacity_type=capacity_type)
