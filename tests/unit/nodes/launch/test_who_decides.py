"""Each field of a launch has somebody who decides it, as the record's tables say."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from botocore.loaders import create_loader
from botocore.model import ListShape, ServiceModel, Shape, StructureShape

from shared.model.ec2.instance_types import CapacityType
from shared.model.provisioner import BlockDevice
from shared.model.values import replace
from shared.nodes.launch.launch_request import launch_body
from tests.builders import option, provisioner
from tests.unit.nodes.launch.test_launch_request import ENDPOINT, attempt, context

RECORD = (
    Path(__file__).parents[4]
    / "docs"
    / "decisions"
    / "0040-no-launch-depends-on-a-default-of-the-account.md"
)
SHAPES = {"launch template": "RequestLaunchTemplateData", "CreateFleet": "CreateFleetRequest"}
SET = {"Dovetail", "user"}


def rows(table: str) -> dict[str, str]:
    """Return who decides each field of a table of the record."""
    text = RECORD.read_text(encoding="utf-8")
    _, _, body = text.partition(f"| {table} | decided by |")
    found: dict[str, str] = {}
    for fields, decider in re.findall(
        r"^\| (`.*?) \| ([\w ]+) \|", body.split("\n\n")[0], re.MULTILINE
    ):
        for field in re.findall(r"`([\w.*]+)`", fields):
            assert field not in found, field
            found[field] = decider
    return found


def requests() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield launch template data and CreateFleet requests in which all that can be set is set."""
    disk = BlockDevice(
        device_name="/dev/xvda", iops=3000, throughput=125, kms_key_id="k", snapshot_id="snap-1"
    )
    plain = provisioner().template
    whole = replace(
        plain, public_ip=True, detailed_monitoring=True, context="c", block_devices=(disk,)
    )
    for template in (plain, whole):
        for service_cidr in ("172.20.0.0/16", "fd30::/108"):
            for capacity_type in CapacityType:
                where = context(
                    provisioner(template=template),
                    endpoint=replace(ENDPOINT, service_cidr=service_cidr),
                )
                body = launch_body(where, attempt(option(capacity_type=capacity_type)))
                for data in body.templates.values():
                    yield dict(data), dict(body.request)


def paths(value: Any, before: str = "") -> Iterator[str]:
    """Yield the names of all leaves, without the numbers of lists."""
    if isinstance(value, Mapping):
        for key, entry in value.items():
            yield from paths(entry, f"{before}.{key}" if before else key)
    elif isinstance(value, list) and value and isinstance(value[0], Mapping):
        for entry in value:
            yield from paths(entry, before)
    else:
        yield before


def leaves(shape: Shape, before: str = "") -> Iterator[str]:
    """Yield the names of all fields that have no fields of their own."""
    if isinstance(shape, ListShape):
        yield from leaves(shape.member, before)
    elif isinstance(shape, StructureShape):
        for name, member in shape.members.items():
            yield from leaves(member, f"{before}.{name}" if before else name)
    else:
        yield before


def covers(field: str, path: str) -> bool:
    """Return whether a row is about a path: by name, a part of what it names, or by its `*`."""
    return path == field or path.startswith(f"{field.removesuffix('.*')}.")


@pytest.mark.parametrize("table", SHAPES)
def test_each_field_that_the_sdk_knows_has_somebody_who_decides_it(table: str) -> None:
    model = ServiceModel(create_loader().load_service_model("ec2", "service-2"))
    known = set(leaves(model.shape_for(SHAPES[table])))
    decided = rows(table)

    assert [path for path in known if not any(covers(field, path) for field in decided)] == []
    assert [field for field in decided if not any(covers(field, path) for path in known)] == []


@pytest.mark.parametrize(("table", "number"), [("launch template", 0), ("CreateFleet", 1)])
def test_requests_set_what_the_tables_say_and_nothing_else(table: str, number: int) -> None:
    asked = {path for request in requests() for path in paths(request[number])}
    decided = {field for field, decider in rows(table).items() if decider in SET}

    assert [path for path in asked if not any(covers(field, path) for field in decided)] == []
    assert [field for field in decided if not any(covers(field, path) for path in asked)] == []
