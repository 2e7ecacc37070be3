"""The Terraform module has the options of the templates."""

from pathlib import Path

import pytest

from tests.infra.judges.every_option import CONTEXT
from tools.release.options import BY_CDK_ALONE, OPTIONS, OTHERWISE
from tools.release.terraform import MODULE, MODULES, parameters_file, variable


@pytest.mark.parametrize("name", MODULES)
def test_the_variables_are_current(name: str) -> None:
    made = parameters_file(control_plane=MODULES[name])

    assert (MODULE / name / "parameters.tf").read_text() == made, "run make terraform"


def test_each_option_of_the_deployment_is_a_variable_or_said_to_need_the_cdk() -> None:
    variables = {variable(option) for option in OPTIONS}
    explained = {*BY_CDK_ALONE, *OTHERWISE}

    assert CONTEXT.keys() == (variables & CONTEXT.keys()) | explained
    page = (MODULE / "README.md").read_text()
    assert [name for name in BY_CDK_ALONE.keys() - {"bundle"} if f"`{name}`" not in page] == []


def test_the_modules_make_objects_and_stacks_alone() -> None:
    text = "".join(Path(path).read_text() for path in sorted(MODULE.glob("c*/*.tf")))

    kinds = {line.split('"')[1] for line in text.splitlines() if line.startswith("resource ")}
    assert kinds == {"aws_cloudformation_stack", "aws_s3_object"}
