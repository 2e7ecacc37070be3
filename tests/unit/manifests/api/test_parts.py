"""Parts of custom resources: what is refused, under which name, and what their schemas say."""

from typing import Annotated, Any, ClassVar

import pytest
from pydantic import Field, field_validator

from shared.manifests.api.parts import (
    AllowedValues,
    CustomResource,
    CustomResourceDefinition,
    Fault,
    Int32,
    Part,
    PrinterColumn,
    Schema,
    ValidationRule,
    read_part,
    refuse,
)
from shared.manifests.problems import FieldProblem


class Disk(Part):
    """A disk."""

    device_name: str = Field(alias="deviceID", description="The device, such as /dev/xvda")
    size: Int32 | None = Field(default=None, ge=1)
    kind: Annotated[str, AllowedValues("ssd", "hdd")] = "ssd"


class Spec(Part):
    """A spec."""

    advice: ClassVar = {"disk": "write it into disks"}
    disks: list[Disk] = Field(default=[])
    names: Annotated[list[str], Schema(maxItems=3)] = Field(default=[])
    labels: dict[str, str] = Field(default={})
    encrypted: bool = False
    share_percent: Int32 = Field(default=-1, ge=0, le=100, validate_default=True)

    @field_validator("labels")
    @classmethod
    def _labels_are_short(cls, labels: dict[str, str]) -> dict[str, str]:
        refuse(
            Fault((name,), value, "write less", field=f"{name}, word 1")
            for name, value in labels.items()
            if len(value) > 3
        )
        return labels


class Machine(CustomResource):
    """A kind."""

    definition: ClassVar[CustomResourceDefinition] = CustomResourceDefinition(
        file="machines.yaml",
        api_version="example.com/v1",
        kind="Machine",
        plural="machines",
        description="A machine",
        columns=(PrinterColumn(name="Name", type="string", path=".metadata.name"),),
    )
    spec: Annotated[Spec, Schema(ValidationRule("at most one", "size(self.disks)\n  <= 1"))] = (
        Field(default_factory=Spec)
    )


def refused(spec: Any, **beside: Any) -> list[str]:
    problems: list[FieldProblem] = []
    whole = {"sharePercent": 3, **spec} if isinstance(spec, dict) else spec
    assert read_part(Machine, {"spec": whole, **beside}, "", problems) is None
    return [f"{problem.field}: {problem.value!r}: {problem.remedy}" for problem in problems]


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        ("x", "spec: 'x': write an object with named fields"),
        ({"disks": [{}]}, "spec.disks[0].deviceID: None: write the device, such as /dev/xvda"),
        ({"disks": ["x"]}, "spec.disks[0]: 'x': write an object with named fields"),
        ({"disks": {}}, "spec.disks: {}: write a list of objects"),
        (
            {"disks": [{"deviceID": "a", "size": 0}]},
            "spec.disks[0].size: 0: write a whole number of 1 or more",
        ),
        (
            {"disks": [{"deviceID": "a", "kind": "tape"}]},
            "spec.disks[0].kind: 'tape': use one of ssd, hdd",
        ),
        (
            {"disks": [{"deviceID": "a", "sizes": 3}]},
            "spec.disks[0].sizes: 3: unknown field; write size",
        ),
        ({"disk": "x"}, "spec.disk: 'x': write it into disks"),
        ({"names": "x"}, "spec.names: 'x': write a list of strings, numbers in quotes"),
        (
            {"names": ["x", 3]},
            "spec.names[1]: 3: write a string, in quotes if it looks like a number",
        ),
        ({"labels": {"a": "long"}}, "spec.labels.a, word 1: 'long': write less"),
        ({"labels": []}, "spec.labels: []: write an object with named fields"),
        # The name of a field as the key of a map is only a key.
        (
            {"labels": {"share_percent": 3}},
            "spec.labels.share_percent: 3: write a string, in quotes if it looks like a number",
        ),
        ({"encrypted": "yes"}, "spec.encrypted: 'yes': write true or false, without quotes"),
        ({"sharePercent": True}, "spec.sharePercent: True: write a whole number from 0 to 100"),
    ],
)
def test_a_wrong_value_is_refused_with_its_place_and_a_remedy(spec: Any, line: str) -> None:
    assert refused(spec) == [line]


def test_a_field_beside_spec_is_sent_there() -> None:
    assert refused({}, disks=[]) == ["disks: []: move it under spec: spec.disks"]
    assert refused({}, specs={}) == ["specs: {}: unknown field; write spec"]


def test_a_key_that_is_no_text_is_refused() -> None:
    problems: list[FieldProblem] = []
    assert read_part(Machine, {"spec": {"sharePercent": 3}, 3: "x"}, "", problems) is None
    assert [problem.field for problem in problems] == ["3"]


def test_a_default_that_is_wrong_is_reported_under_its_name_in_manifests() -> None:
    problems: list[FieldProblem] = []
    assert read_part(Spec, {}, "AWSNodeTemplate nodes.spec", problems) is None
    assert [problem.field for problem in problems] == ["AWSNodeTemplate nodes.spec.sharePercent"]


def test_everything_wrong_is_reported_and_null_counts_as_absent() -> None:
    assert len(refused({"encrypted": 3, "names": 3, "labels": {"a": None}})) == 3
    problems: list[FieldProblem] = []
    found = read_part(Spec, {"disks": None, "sharePercent": 7}, "", problems)
    assert found == Spec(sharePercent=7)
    assert problems == []


def test_a_schema_holds_shapes_choices_and_rules() -> None:
    schema = Machine.model_json_schema()
    assert schema["properties"]["spec"]["x-kubernetes-validations"] == [
        {"message": "at most one", "rule": "size(self.disks) <= 1"}
    ]
    spec, disk = schema["$defs"]["Spec"]["properties"], schema["$defs"]["Disk"]["properties"]
    assert spec["names"]["maxItems"] == 3
    assert spec["sharePercent"]["format"] == "int32"
    assert disk["kind"]["enum"] == ["ssd", "hdd"]
