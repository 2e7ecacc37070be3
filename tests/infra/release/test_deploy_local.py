"""The whole app deployed into the embedded AWS API, looked up, and removed again."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.local.aws.embedded import EmbeddedAws
from infra.local.aws.templates.assembly import read_assembly
from infra.local.aws.templates.deploy import deploy
from infra.local.aws.templates.resource_check import missing_resources, not_emulated
from tools import deploy_local

pytestmark = pytest.mark.landing

# What outlives the stacks unless the deployment is for trying out.
KEPT = {"AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::S3::BucketPolicy"}


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws() as server:
        yield server


def _left_of(aws: EmbeddedAws, assembly: Path) -> tuple[int, set[str]]:
    """Deploy and remove; return how many resources were looked up, and the types of those left."""
    aws.reset()
    stacks = read_assembly(assembly)
    aws.control("seed", deploy_local.seeds(stacks))
    deploy(assembly, aws.access)
    assert missing_resources(assembly, aws.access) == ()
    made = deploy_local.physical_ids(aws.client, stacks)
    assert deploy_local.left_over(aws.client, made) == tuple(sorted(made))
    deploy_local.remove(aws.client, stacks)
    return len(made), {made[name][0] for name in deploy_local.left_over(aws.client, made)}


def test_only_ledger_and_archive_outlive_the_stacks(aws: EmbeddedAws, assembly: Path) -> None:
    made, left = _left_of(aws, assembly)

    assert made > 120
    assert left == KEPT


def test_of_a_deployment_for_trying_out_nothing_is_left(
    aws: EmbeddedAws, assembly: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "assembly"
    shutil.copytree(assembly, copy)
    for path in copy.glob("*.template.json"):
        # As `-c removal=destroy` writes it (tests/infra/control_plane/test_control_plane.py).
        text = path.read_text().replace('"Retain"', '"Delete"')
        protected = '"DeletionProtectionEnabled": '
        path.write_text(text.replace(f"{protected}true", f"{protected}false"))

    assert _left_of(aws, copy)[1] == set()


def test_types_that_are_left_out_are_few_and_have_their_reasons(assembly: Path) -> None:
    declared = {
        resource["Type"]
        for path in assembly.glob("*.template.json")
        for resource in json.loads(path.read_text())["Resources"].values()
    }

    assert declared & not_emulated().keys() == {
        "AWS::EKS::PodIdentityAssociation",
        "AWS::Logs::QueryDefinition",
    }
