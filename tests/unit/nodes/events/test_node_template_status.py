"""The status of an AWSNodeTemplate: what it selects."""

from datetime import UTC, datetime
from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.errors import RetryableError, UnauthorizedError
from shared.model.values import replace
from shared.ports import (
    FoundImage,
    MachineImage,
    Rival,
    RivalKind,
    Subnet,
    TemplateStatus,
)
from tests.builders import ZONES, pod
from tests.fakes.images import image_named
from tests.unit.manifests.documents import template
from tests.unit.nodes.brakes.test_hold import Seen
from tests.unit.nodes.launch.test_launch_request import AMD
from tests.unit.worlds import World

IMAGE = MachineImage(
    image_id=image_named(AMD),
    name="amazon-eks-node",
    architecture="amd64",
    created_at=datetime(2026, 8, 1, tzinfo=UTC),
)


def provisioner(name: str = "default", of: str = "nodes") -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.sh/v1alpha5",
        "kind": "Provisioner",
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {
            "providerRef": {"name": of},
            "requirements": [{"key": keys.INSTANCE_TYPE, "operator": "In", "values": ["m5.large"]}],
        },
    }


def world(*raws: dict[str, Any]) -> World:
    made = World()
    made.cloud.images = (IMAGE,)
    made.cluster.apply(*raws)
    return made


def status(there: World, name: str = "nodes") -> TemplateStatus:
    there.provisioning().report_provisioners()
    return there.cluster.template_statuses[name]


def test_template_status_shows_its_subnets_groups_and_images() -> None:
    there = world(template(), provisioner())
    there.cloud.subnets = (
        Subnet(subnet_id="subnet-1", zone=ZONES[0], free_addresses=5),
        Subnet(subnet_id="subnet-2", zone=ZONES[1], free_addresses=9),
    )
    found = status(there)
    assert [subnet.subnet_id for subnet in found.subnets] == ["subnet-2", "subnet-1"]
    assert found.security_groups == ("sg-1",)
    assert found.images == (
        FoundImage(
            image_id=IMAGE.image_id,
            name="amazon-eks-node",
            labels={keys.ARCH: "amd64"},
            lacks=(keys.INSTANCE_ACCELERATOR_COUNT, keys.INSTANCE_GPU_COUNT),
        ),
    )
    assert found.problems == ()
    assert there.cluster.conditions["default"][:2] == (True, "Valid")


def test_template_without_matches_shows_what_is_missing() -> None:
    there = world(template(amiFamily="Custom", amiSelector={"team": "red"}), provisioner())
    there.cloud.subnets = ()
    there.cloud.security_groups = ()
    found = status(there)
    assert found == TemplateStatus(problems=found.problems)
    assert [problem.split()[0] for problem in found.problems] == [
        "subnetSelector",
        "securityGroupSelector",
        "no",
    ]


def test_a_launch_template_of_the_users_own_needs_only_subnets() -> None:
    there = world(template(launchTemplate="mine"), provisioner())
    there.cloud.security_groups = ()
    assert status(there).problems == ()


def test_one_that_cannot_be_looked_up_says_why_and_the_next_is_served() -> None:
    there = world(template(), provisioner(), template("other"), provisioner("second", of="other"))
    there.cloud.fail_next("site", UnauthorizedError("no right to look"))
    assert status(there).problems == ("no right to look",)
    assert status(there, "other").problems == ()


def test_a_lookup_to_be_repeated_is_repeated() -> None:
    there = world(template(), provisioner())
    there.cloud.fail_next("site", RetryableError("later"))
    with pytest.raises(RetryableError):
        there.provisioning().report_provisioners()


def test_a_missing_or_wrong_template_refuses_its_provisioner_alone() -> None:
    there = world(
        template(),
        template("wrong", amiFamily="Bottlerocket", userData="[settings"),
        provisioner(),
        provisioner("lost", of="none"),
        provisioner("bad", of="wrong"),
    )
    there.cluster.add(pod("a"))
    there.provisioning().report_provisioners()
    conditions = there.cluster.conditions
    assert conditions["default"][0] is True
    assert conditions["lost"][0] is False
    assert "spec.providerRef.name: 'none': there is no AWSNodeTemplate" in conditions["lost"][2]
    assert conditions["bad"][0] is False
    assert conditions["bad"][2].startswith(
        "AWSNodeTemplate wrong.spec.userData, line 1: 'not shown': is no TOML"
    )
    (told,) = there.cluster.template_statuses["wrong"].problems
    assert told == conditions["bad"][2]
    there.provision()
    assert set(there.bound) == {"a"}
    # It comes to be right: the Provisioner can be used.
    there.cluster.apply(template("none"))
    there.provisioning().report_provisioners()
    assert there.cluster.conditions["lost"][0] is True


def test_beside_another_autoscaler_no_node_is_reported_as_useful() -> None:
    there = world(template(), provisioner())
    karpenter = Rival(kind=RivalKind.KARPENTER, where="karpenter/karpenter-leader-election")
    there.ports = replace(there.ports, rivals=Seen(karpenter))
    there.provision()
    there.provisioning().report_provisioners()
    assert there.cluster.conditions["default"][:2] == (False, "AnotherAutoscaler")
    assert there.cluster.template_statuses == {}


def test_provisioner_without_template_writes_no_template_status() -> None:
    there = world(requiring("team", "red"))
    there.provisioning().report_provisioners()
    assert there.cluster.template_statuses == {}
    assert there.cluster.conditions["default"][:2] == (True, "Valid")


def requiring(key: str, *values: str) -> dict[str, Any]:
    """Return a Provisioner of two requirements that names no template."""
    wanted = {keys.INSTANCE_FAMILY: ["m5"], key: list(values)}
    requirements = [
        {"key": name, "operator": "In", "values": allowed} for name, allowed in wanted.items()
    ]
    return {**provisioner(), "spec": {"requirements": requirements}}


def test_provisioner_is_active_only_if_a_launch_could_ask_for_something_that_exists() -> None:
    there = world(requiring(keys.ZONE, "eu-west-1a"))
    there.provisioning().report_provisioners()
    active, reason, text = there.cluster.conditions["default"]
    assert (active, reason) == (False, "NotReady")
    assert text.startswith("cannot launch nodes: its requirements leave no instance type in us-")
    there.cloud.security_groups = ()
    there.provisioning().report_provisioners()
    assert there.cluster.conditions["default"][2] == (
        "cannot launch nodes: securityGroupSelector finds no security group"
    )


@pytest.mark.parametrize(
    ("key", "value"), [(keys.INSTANCE_TYPE, "m5.larg"), (keys.ZONE, "eu-west-1a")]
)
def test_requirement_that_leaves_nothing_is_named_with_the_value_that_does_not_exist(
    key: str, value: str
) -> None:
    there = world(requiring(key, value))
    there.provisioning().report_provisioners()
    text = there.cluster.conditions["default"][2]
    assert f"; requirement {key}: no instance type here has {value}" in text


def test_requirement_that_is_probably_misspelled_is_reported_in_the_condition() -> None:
    there = world(requiring("node.k8s.aws/instance-type", "m5.large"))
    there.provisioning().report_provisioners()
    active, _, text = there.cluster.conditions["default"]
    assert active
    assert "did you mean node.kubernetes.io/instance-type?" in text


def test_only_the_shown_image_is_reported() -> None:
    there = world(template(), provisioner())
    there.cloud.images = (replace(IMAGE, image_id="ami-other"),)
    assert status(there).images == ()
