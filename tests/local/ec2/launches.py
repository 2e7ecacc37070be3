"""Reading and writing fleet requests in tests."""

from collections.abc import Mapping
from typing import Any


def override(instance_type: str, subnet_id: str, **more: Any) -> dict[str, Any]:
    return {"InstanceType": instance_type, "SubnetId": subnet_id, **more}


def picked(answer: Mapping[str, Any]) -> list[tuple[str, int]]:
    """(type, machines) by launched pool, in the order of the answer."""
    return [(row["InstanceType"], len(row["InstanceIds"])) for row in answer["Instances"]]


def refused(answer: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(type, code) by error, in the order of the answer."""
    return [
        (row["LaunchTemplateAndOverrides"]["Overrides"]["InstanceType"], row["ErrorCode"])
        for row in answer["Errors"]
    ]


def ids_of(answer: Mapping[str, Any]) -> list[str]:
    return [entry for row in answer["Instances"] for entry in row["InstanceIds"]]
