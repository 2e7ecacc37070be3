"""NodePools, as the values that Provisioners are."""

from datetime import timedelta
from typing import Any

import pytest

from shared.manifests.custom_resources.node_pools import decode_node_pool
from shared.manifests.custom_resources.node_templates import by_name
from shared.manifests.custom_resources.pool_lifetimes import is_foreign, read_lifetime
from shared.manifests.custom_resources.provisioners import decode_provisioner
from shared.manifests.problems import InvalidProvisionerError
from shared.model import labels as keys
from shared.model.node_budgets import NodeBudget
from shared.model.policy import KarpenterBehavior, PreferencePolicy, Trigger
from shared.model.provisioner import Provisioner
from shared.model.resources import Resources
from tests.builders import needs
from tests.unit.manifests.documents import node_class, node_pool, provisioner, wants

TENANCY = needs(keys.INSTANCE_TENANCY, "In", "default")
CLASSES = by_name([node_class()])
DAY = timedelta(days=1)


def decoded(*arguments: Any, **more: Any) -> Provisioner:
    return decode_node_pool(node_pool(*arguments, **more), CLASSES)


def disrupted(**disruption: Any) -> Provisioner:
    return decoded(disruption=disruption)


def test_what_is_left_out_is_filled_in_as_v1_says() -> None:
    found = decoded()
    assert (found.kind, found.name, found.generation) == ("NodePool", "default", 3)
    assert found.requirements == TENANCY
    assert found.ttl_until_expired == 30 * DAY
    assert found.consolidation
    assert (found.ttl_after_empty, found.limits, found.weight) == (None, None, 0)
    assert found.template.metadata_options.http_put_response_hop_limit == 1
    assert found.preference_policy == PreferencePolicy.RESPECT
    assert found.warnings == ()


def test_the_preference_policy_may_be_another() -> None:
    raw = node_pool()
    raw["metadata"]["annotations"] = {"dovetail.dev/preference-policy": "Ignore"}
    assert decode_node_pool(raw, CLASSES).preference_policy == PreferencePolicy.IGNORE


def test_what_is_done_as_in_karpenter_is_named() -> None:
    raw = node_pool()
    raw["metadata"]["annotations"] = {"dovetail.dev/as-karpenter": "images, lifetime"}
    ways = {KarpenterBehavior.IMAGES, KarpenterBehavior.LIFETIME}
    assert decode_node_pool(raw, CLASSES).as_karpenter == ways
    assert read_lifetime(raw).as_karpenter == ways


@pytest.mark.parametrize("value", ["images,limit", "", 3])
def test_what_cannot_be_done_as_in_karpenter_is_refused(value: object) -> None:
    raw = node_pool()
    raw["metadata"]["annotations"] = {"dovetail.dev/as-karpenter": value}
    with pytest.raises(InvalidProvisionerError) as refused:
        decode_node_pool(raw, CLASSES)
    assert "metadata.annotations" in str(refused.value)
    assert "name some of expiration, images, lifetime, with commas between" in str(refused.value)


@pytest.mark.parametrize("trigger", list(Trigger))
def test_what_begins_a_replacement_is_switched_on_and_off(trigger: Trigger) -> None:
    for value, acts in (("on", True), ("off", False)):
        annotations = {f"dovetail.dev/{trigger}": value}
        raw = node_pool()
        raw["metadata"]["annotations"] = annotations
        assert decode_node_pool(raw, CLASSES).acts_on(trigger) is acts
        assert read_lifetime(raw).acts_on(trigger) is acts
        old = provisioner()
        old["metadata"]["annotations"] = annotations
        assert decode_provisioner(old).acts_on(trigger, otherwise=not acts) is acts
    raw = node_pool()
    raw["metadata"]["annotations"] = {f"dovetail.dev/{trigger}": "true"}
    with pytest.raises(InvalidProvisionerError, match='write "on" or "off", or remove it'):
        decode_node_pool(raw, CLASSES)
    assert read_lifetime(raw).triggers == {}


def test_each_operator_is_read() -> None:
    asked = [
        wants("a", "In", "x"),
        wants("b", "NotIn", "x"),
        wants("c", "Exists"),
        wants("d", "DoesNotExist"),
        *(wants(operator.lower(), operator, "4") for operator in ("Gt", "Gte", "Lt", "Lte")),
    ]
    found = decoded({"requirements": asked}).requirements
    assert [requirement.describe() for requirement in found if requirement not in TENANCY] == [
        *("a in [x]", "b not in [x]", "c exists", "d absent"),
        *("gt >= 5", "gte >= 4", "lt <= 3", "lte <= 4"),
    ]


def test_keys_of_kubernetes_may_be_used() -> None:
    found = decoded({}, {"labels": {"node.k8s.io/team": "red"}})
    assert found.requirements == needs("node.k8s.io/team", "In", "red").merge(TENANCY)
    assert found.labels == {
        "node.k8s.io/team": "red",
        "karpenter.k8s.aws/ec2nodeclass": "nodes",
    }


def test_labels_annotations_taints_and_weight_reach_the_nodes() -> None:
    taint = {"key": "team", "value": "red", "effect": "NoSchedule"}
    found = decoded(
        {"taints": [taint], "startupTaints": [{**taint, "effect": "NoExecute"}]},
        {"annotations": {"example.com/owner": "red"}},
        weight=10,
    )
    assert found.annotations == {"example.com/owner": "red"}
    assert [str(entry.effect) for entry in (*found.taints, *found.startup_taints)] == [
        "NoSchedule",
        "NoExecute",
    ]
    assert found.weight == 10


def test_limits_count_resources_and_nodes() -> None:
    found = decoded(limits={"cpu": 10, "nodes": "3"})
    assert found.limits == Resources.of(cpu=10_000)
    assert found.ceiling.max_nodes == 3


def test_the_lower_of_limit_and_annotation_counts_for_nodes() -> None:
    raw = node_pool(limits={"nodes": 3})
    raw["metadata"]["annotations"] = {"dovetail.dev/max-nodes": "2"}
    assert decode_node_pool(raw, CLASSES).ceiling.max_nodes == 2


def test_a_limit_on_nothing_that_machines_have_is_reported() -> None:
    (warning,) = decoded(limits={"gpu": 1}).warnings
    assert warning.startswith("spec.limits.gpu: 1: no instance has a resource of that name")


def test_the_larger_of_two_min_values_of_a_label_counts() -> None:
    asked = [
        {**wants("beta.kubernetes.io/arch", "Exists"), "minValues": 1},
        {**wants("kubernetes.io/arch", "In", "amd64", "arm64"), "minValues": 2},
        wants("team", "Exists"),
    ]
    found = decode_node_pool(node_pool({"requirements": asked}), CLASSES)
    assert (found.least_values, found.warnings) == ({"kubernetes.io/arch": 2}, ())


def test_kubelet_and_launch_settings_are_those_of_the_class() -> None:
    named = by_name([node_class(kubelet={"maxPods": 20}, tags={"team": "red"})])
    found = decode_node_pool(node_pool(), named)
    assert (found.kubelet.max_pods, found.template.tags) == (20, {"team": "red"})


def test_warnings_of_the_class_are_those_of_the_pool_under_its_name() -> None:
    named = by_name([node_class(amiSelectorTerms=[{"alias": "al2@lates"}])])
    (warning,) = decode_node_pool(node_pool(), named).warnings
    assert warning.startswith("EC2NodeClass nodes: spec.amiSelectorTerms[0].alias: al2@lates: ")


def test_without_budgets_a_tenth_of_the_nodes_may_be_disrupted() -> None:
    assert decoded().budgets == disrupted(budgets=[{}]).budgets == (NodeBudget(percent=10),)
    assert disrupted(budgets=[]).budgets == ()


def test_a_schedule_that_cannot_be_read_blocks_and_is_reported() -> None:
    found = disrupted(budgets=[{}, {"nodes": "5", "schedule": "0 9 * * 7", "duration": "8h"}])
    (warning,) = found.warnings
    assert warning.startswith("spec.disruption.budgets[1].schedule: '0 9 * * 7': all disruption")
    assert [bool(budget.fault) for budget in found.budgets or ()] == [False, True]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (
            node_pool(disruption={"consolidationPolicy": "Balanced"}),
            "spec.disruption.consolidationPolicy: Balanced is read as WhenEmptyOrUnderutilized",
        ),
        (
            node_pool({"kubelet": {"maxPods": 110}}),
            "spec.template.spec.kubelet: dropped, as by Karpenter",
        ),
    ],
)
def test_what_does_nothing_yet_is_reported(raw: dict[str, Any], words: str) -> None:
    (warning,) = decode_node_pool(raw, CLASSES).warnings
    assert warning.startswith(words)


def test_how_long_drains_last_and_pods_must_rest_is_read() -> None:
    assert decoded({"terminationGracePeriod": "1h"}).termination_grace_period == DAY / 24
    assert decoded().termination_grace_period is None
    found = disrupted(consolidateAfter="1m")
    minute = timedelta(minutes=1)
    assert (found.consolidate_after, found.ttl_after_empty) == (minute, minute)
    only_empty = disrupted(consolidateAfter="0s", consolidationPolicy="WhenEmpty")
    assert (only_empty.consolidate_after, only_empty.ttl_after_empty) == (DAY * 0, DAY * 0)
    never = disrupted(consolidateAfter="Never")
    assert (never.consolidation, never.ttl_after_empty) == (False, None)


def test_marks_on_the_object_hold_a_pool_back() -> None:
    raw = node_pool()
    raw["metadata"] |= {
        "annotations": {"dovetail.dev/paused": "true", "dovetail.dev/shadow": "true"},
        "deletionTimestamp": "2026-01-01T00:00:00Z",
    }
    found = decode_node_pool(raw, CLASSES)
    assert (found.paused, found.shadow, found.deleting) == (True, True, True)


@pytest.mark.parametrize(
    ("group", "foreign"),
    [
        ("eks.amazonaws.com", True),
        ("karpenter.kwok.sh", True),
        ("karpenter.k8s.aws", False),
        ("karpenter.k8s.aws/v1", False),
        (None, False),
    ],
)
def test_a_node_class_of_another_group_is_foreign(group: str | None, *, foreign: bool) -> None:
    assert is_foreign(node_pool({"nodeClassRef": {"group": group, "name": "x"}})) is foreign
