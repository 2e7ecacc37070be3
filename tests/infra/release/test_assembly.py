"""The templates with parameters make what the app synthesises with the same options."""

import json
import zipfile
from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Any

import pytest

from shared.settings import ProvisionSettings
from tests.infra.release.resolved import resolved
from tools.release import assembly
from tools.release.options import IMAGE, OPTIONS, options_of
from tools.release.parametrize import ParametrizeError, parametrize

CONTROL_PLANE, ATTACHMENT = assembly.TEMPLATES
GIVEN = {
    CONTROL_PLANE: {"CodeBucket": "code", "CodeKey": "functions.zip"},
    ATTACHMENT: {"MaxPricePerHour": "none", "ForwarderImage": IMAGE},
}
# Each option as in its trial, all at once.
EVERY = {option.parameter: option.trial or option.on for option in OPTIONS}
pytestmark = pytest.mark.landing


@pytest.fixture(scope="module")
def templates() -> Mapping[str, Mapping[str, Any]]:
    return assembly.templates()


def _context() -> dict[str, str]:
    merged: dict[str, list[str]] = {}
    for option in OPTIONS:
        for key, value in option.context.items():
            merged.setdefault(key, []).append(value)
    return {key: ",".join(values) for key, values in merged.items()}


@pytest.mark.parametrize("name", assembly.TEMPLATES)
@pytest.mark.parametrize("every", [False, True], ids=["plain", "every option"])
def test_what_they_make_is_what_the_app_synthesises(
    templates: Mapping[str, Mapping[str, Any]], name: str, *, every: bool
) -> None:
    template = templates[name]
    chosen = {key: value for key, value in EVERY.items() if key in template["Parameters"]}
    made = resolved(template, GIVEN[name] | (chosen if every else {}))
    wanted = assembly.synthesized(_context() if every else {})[name]

    found = list(_differences(_plain(_united(made)), _plain(_united(wanted))))
    assert [line for line in found if ".Code." not in line] == []


def test_each_template_has_its_parameters(templates: Mapping[str, Mapping[str, Any]]) -> None:
    for name, template in templates.items():
        control_plane = name == CONTROL_PLANE
        options = {option.parameter for option in options_of(control_plane=control_plane)}
        others = {"CodeBucket", "CodeKey", *map(assembly.setting_parameter, assembly.settings())}
        assert template["Parameters"].keys() == options | (others if control_plane else set())
        assert len(json.dumps(template)) < 1_000_000


def test_a_setting_is_given_to_each_function_that_reads_it(
    templates: Mapping[str, Mapping[str, Any]],
) -> None:
    given = {**GIVEN[CONTROL_PLANE], "MaxNodeVcpus": "16", "FleetBurst": "3"}
    functions = [
        resource["Properties"]["Environment"]["Variables"]
        for resource in resolved(templates[CONTROL_PLANE], given)["Resources"].values()
        if resource["Type"] == "AWS::Lambda::Function"
    ]

    assert {row["DOVETAIL_FLEET_BURST"] for row in functions} == {"3"}
    (provision,) = (row for row in functions if "DOVETAIL_MAX_NODE_VCPUS" in row)
    variables = {
        key: value if isinstance(value, str) else "x" * 9 for key, value in provision.items()
    }
    machines = {key: "arn:aws:states:x" for key in variables if key.endswith("_MACHINE")}
    assert ProvisionSettings.from_environment(variables | machines).max_node_vcpus == 16


def test_the_zip_has_one_folder_with_the_module_beside_the_templates() -> None:
    packed = assembly.archive("0.1.0", {"cluster.template.json": {}}, b"code")

    with zipfile.ZipFile(BytesIO(packed)) as archive:
        names = set(archive.namelist())
    assert {name.partition("/")[0] for name in names} == {"dovetail-0.1.0"}
    assert {
        "dovetail-0.1.0/cluster.template.json",
        "dovetail-0.1.0/functions.zip",
        "dovetail-0.1.0/terraform/cluster/main.tf",
        "dovetail-0.1.0/terraform/control_plane/parameters.tf",
    } <= names


def test_two_options_that_change_one_place_are_refused() -> None:
    plain = {"Resources": {"A": {"Type": "B", "Properties": {"C": "d"}}}}
    changed = {"Resources": {"A": {"Type": "B", "Properties": {"C": "e"}}}}
    switches = [option for option in OPTIONS if option.parameter in {"Drift", "Ssm"}]

    with pytest.raises(ParametrizeError, match=r"Resources\.A\.Properties\.C: Drift and Ssm both"):
        parametrize(plain, [(option, changed) for option in switches])


def _united(template: Mapping[str, Any]) -> dict[str, Any]:
    """Return a template with all statements of a role in one place, sorted.

    The app moves statements that have no room in a role's own policy into a managed one.
    """
    statements: dict[str, list[str]] = {}
    rest = {}
    for name, resource in template["Resources"].items():
        if resource["Type"] not in {"AWS::IAM::ManagedPolicy", "AWS::IAM::Policy"}:
            rest[name] = {key: part for key, part in resource.items() if key != "DependsOn"}
            continue
        (role,) = resource["Properties"]["Roles"]
        found = resource["Properties"]["PolicyDocument"]["Statement"]
        texts = [json.dumps(_plain(entry), sort_keys=True) for entry in found]
        statements.setdefault(role["Ref"], []).extend(texts)
    policies = {role: sorted(texts) for role, texts in statements.items()}
    return {"Resources": rest, "Policies": policies, "Outputs": template.get("Outputs", {})}


def _plain(value: Any) -> Any:
    """Return a template in which one value is as good as a list of one, and texts as numbers."""
    if isinstance(value, dict):
        fields = {key: _plain(entry) for key, entry in value.items()}
        if fields.keys() == {"Fn::Join"}:
            separator, parts = value["Fn::Join"]
            return {"Join": [separator, _texts(parts)]}
        return fields
    if isinstance(value, list):
        entries = [_plain(entry) for entry in value]
        return entries[0] if len(entries) == 1 else entries
    return str(value)


def _texts(parts: list[Any]) -> list[Any]:
    """Return the parts of a text, texts that follow each other as one."""
    joined: list[Any] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        else:
            joined.append(part)
    return joined


def _differences(mine: Any, other: Any, path: str = "") -> Iterator[str]:
    if isinstance(mine, dict) and isinstance(other, dict):
        for key in sorted(mine.keys() | other.keys()):
            yield from _differences(mine.get(key), other.get(key), f"{path}.{key}")
    elif isinstance(mine, list) and isinstance(other, list) and len(mine) == len(other):
        for number, (entry, its) in enumerate(zip(mine, other, strict=True)):
            yield from _differences(entry, its, f"{path}.{number}")
    elif mine != other:
        yield f"{path}: {mine} is not {other}"
