"""Which nodes have drifted."""

from typing import Any

import pytest

from shared.disruption.drift import drift_of, shape_hash, stamp_of
from shared.disruption.evaluation import InstanceImages
from shared.disruption.evaluation_due import needs_evaluation
from shared.manifests.api.selector_map import selector_of
from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.provisioner import (
    BlockDevice,
    KubeletConfiguration,
    MetadataOptions,
)
from shared.model.resources import Resources
from shared.model.values import replace
from tests.builders import needs, node_of, pod, provisioner
from tests.unit.disruption.clusters import LATER, cluster, looked, on
from tests.unit.worlds import World

OWNER = provisioner()
TAINT = Taint(key="team", value="a", effect=Effect.NO_SCHEDULE)
ONLY = provisioner(requirements=needs(keys.INSTANCE_TYPE, "In", "m5.xlarge"))


def born_of(owner: Any, **changes: Any) -> Node:
    return node_of("a", annotations=stamp_of(owner), **changes)


def found(node: Node, owner: Any = OWNER, *, drift: bool = True, image: str = "") -> Any:
    return looked(
        cluster(node, bound=(on(node.name),), provisioners=(owner,)),
        drift=drift,
        images=InstanceImages(of_instance={"i-a": image}, current={"i-a": "ami-new"}),
    ).change


def test_a_machine_of_an_old_image_has_drifted() -> None:
    assert found(born_of(OWNER), image="ami-old").why == "image ami-old is no longer current"


def test_what_the_provisioner_says_comes_before_the_image() -> None:
    changed = provisioner(labels={"team": "a"})
    assert found(born_of(OWNER), changed, image="ami-old").why == "provisioner default has changed"


def test_requirements_come_before_the_image() -> None:
    assert found(born_of(ONLY), ONLY, image="ami-old").why.startswith("requirement ")


def test_nothing_has_drifted_unless_it_is_asked_for() -> None:
    assert found(born_of(OWNER), provisioner(labels={"team": "a"}), drift=False) is None


def test_drifted_nodes_stay_once_drift_is_disabled() -> None:
    changed = provisioner(labels={"team": "a"})
    assert found(born_of(OWNER), changed) is not None
    assert found(born_of(OWNER), changed, drift=False) is None


def test_a_node_is_looked_at_for_drift_only_each_time_it_is_asked_for() -> None:
    changed = provisioner(labels={"team": "a"})
    found(born_of(OWNER), changed)
    assert needs_evaluation([born_of(OWNER)], {"default": changed}, LATER, drift=True)
    assert not needs_evaluation([born_of(OWNER)], {"default": changed}, LATER)


@pytest.mark.parametrize("ready", [False, None])
def test_a_node_that_is_not_initialized_is_left_to_its_registration(ready: Any) -> None:
    starting = born_of(OWNER, ready=ready, labels={keys.INITIALIZED: ""})
    assert found(starting, provisioner(labels={"team": "a"})) is None


def test_a_node_without_a_provisioner_does_not_drift() -> None:
    other = provisioner("other", labels={"team": "a"})
    assert found(born_of(OWNER), other) is None


def test_a_node_is_no_longer_drifted_when_the_change_is_undone() -> None:
    assert found(born_of(OWNER), provisioner(labels={"team": "a"})) is not None
    assert found(born_of(OWNER), OWNER) is None


@pytest.mark.parametrize(
    ("requirement", "drifts"),
    [
        (needs(keys.INSTANCE_TYPE, "In", "m5.large"), False),
        (needs(keys.INSTANCE_TYPE, "NotIn", "m5.large"), True),
        (needs(keys.ZONE, "In", "us-east-1b"), True),
        (needs(keys.ZONE, "Exists"), False),
        (needs("team", "DoesNotExist"), False),
        (needs("team", "In", "a"), True),
    ],
)
def test_requirements_that_a_node_no_longer_meets_are_drift(requirement: Any, drifts: Any) -> None:
    owner = provisioner(requirements=requirement)
    assert bool(drift_of(node_of("a"), owner)) is drifts


def test_only_nodes_of_the_provisioner_that_changed_have_drifted() -> None:
    mine = node_of("a", annotations=stamp_of(OWNER))
    theirs = replace(mine, labels={**mine.labels, keys.PROVISIONER_NAME: "other"})
    assert drift_of(mine, provisioner(labels={"team": "a"})) != ""
    assert drift_of(theirs, provisioner("other")) == ""


@pytest.mark.parametrize(
    "changes",
    [
        {"labels": {"team": "a"}},
        {"annotations": {"team": "a"}},
        {"taints": (TAINT,)},
        {"startup_taints": (TAINT,)},
        {"kubelet": KubeletConfiguration(max_pods=20)},
        {"kubelet": KubeletConfiguration(kube_reserved=Resources.of(cpu=100))},
        {"kubelet": KubeletConfiguration(eviction_hard={"memory.available": "5%"})},
    ],
)
def test_every_field_of_a_provisioner_that_shapes_nodes_counts(changes: Any) -> None:
    assert drift_of(born_of(OWNER), provisioner(**changes)) == "provisioner default has changed"


def test_a_provisioner_needs_no_hash_of_its_own() -> None:
    assert keys.PROVISIONER_HASH not in OWNER.annotations
    assert found(born_of(OWNER), OWNER) is None


def test_a_node_without_a_hash_has_not_drifted() -> None:
    assert found(node_of("a"), provisioner(labels={"team": "a"})) is None


# --- what the AWS half says


def template(**changes: Any) -> Any:
    return replace(OWNER, template=replace(OWNER.template, **changes))


def test_a_new_node_carries_the_hash_of_its_shape() -> None:
    world = World(OWNER, pod())
    world.provision()
    assert world.node.annotations[keys.PROVISIONER_HASH] == shape_hash(OWNER)


def test_a_template_that_is_missing_makes_no_node_drift() -> None:
    # Its Provisioner is not valid then, so the desired state of its nodes is unknown.
    assert found(born_of(OWNER), provisioner("another")) is None


def test_a_provisioner_with_its_own_block_does_not_drift_by_itself() -> None:
    assert drift_of(born_of(OWNER), OWNER, "ami-new", "ami-new") == ""


def test_a_provisioner_that_is_gone_is_no_failure() -> None:
    seen = cluster(born_of(OWNER), bound=(on("a"),), provisioners=())
    assert looked(seen, drift=True).change is None


def test_an_image_that_no_selector_finds_any_more_is_drift() -> None:
    assert drift_of(born_of(OWNER), OWNER, "ami-gone", "ami-1") != ""


def test_of_two_reasons_the_template_is_reported() -> None:
    other = template(ami_family="Bottlerocket")
    assert drift_of(born_of(OWNER), other, "ami-old", "ami-new") == (
        "provisioner default has changed"
    )


@pytest.mark.parametrize("selector", ["subnet_selector", "security_group_selector"])
def test_selectors_that_find_nothing_make_no_node_drift(selector: str) -> None:
    assert drift_of(born_of(OWNER), template(**{selector: selector_of({"finds": "nothing"})})) == ""


def test_a_machine_that_is_as_it_should_be_has_not_drifted() -> None:
    assert found(born_of(OWNER), OWNER, image="ami-new") is None


def test_a_custom_launch_template_has_no_resolved_image() -> None:
    owner = template(launch_template="mine")
    assert drift_of(born_of(owner), owner, "ami-any", "") == ""


def test_security_groups_that_are_the_same_are_no_drift() -> None:
    assert drift_of(born_of(OWNER), template()) == ""


def test_a_node_without_an_instance_type_is_no_failure() -> None:
    labels = {k: v for k, v in node_of("a").labels.items() if k != keys.INSTANCE_TYPE}
    one = replace(born_of(OWNER), labels=labels)
    assert drift_of(one, OWNER) == ""
    assert drift_of(one, ONLY).endswith("no longer allows its absence")


def test_a_node_without_a_machine_is_no_failure() -> None:
    one = replace(born_of(OWNER), provider_id="")
    assert found(one, OWNER) is None


def test_a_machine_that_ec2_does_not_know_is_no_failure() -> None:
    one = replace(born_of(OWNER), provider_id="aws:///us-east-1a/i-gone")
    assert found(one, OWNER, image="ami-old") is None


@pytest.mark.parametrize(
    "changes",
    [
        {"ami_family": "Bottlerocket"},
        {"instance_profile": "other"},
        {"tags": {"team": "a"}},
        {"metadata_options": MetadataOptions(http_tokens="optional")},
        {"block_devices": (BlockDevice(device_name="/dev/xvda"),)},
        {"launch_template": "mine"},
    ],
)
def test_a_field_of_the_template_that_shapes_machines_counts(changes: Any) -> None:
    assert found(born_of(OWNER), template(**changes)) is not None


@pytest.mark.parametrize("selector", ["subnet_selector", "security_group_selector"])
def test_what_only_selects_does_not_count(selector: str) -> None:
    other = template(**{selector: selector_of({"other": "one"})})
    assert shape_hash(other) == shape_hash(OWNER) == shape_hash(provisioner())


def test_a_node_of_a_release_that_wrote_no_hash_has_not_drifted() -> None:
    assert drift_of(node_of("a"), template(ami_family="Bottlerocket")) == ""
