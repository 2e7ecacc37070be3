"""What the values of the model say about themselves."""

from datetime import timedelta
from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType, Overhead
from shared.model.ec2.launches import Instance
from shared.model.errors import (
    AutoscalerError,
    ConflictError,
    InvalidManifestError,
    PermanentError,
    RetryableError,
    ThrottledError,
)
from shared.model.kubernetes.pods import ControllerRef, LabelSelector
from shared.model.kubernetes.taints import Effect, Taint, Toleration, first_untolerated
from shared.model.plan import Plan
from shared.model.resources import Resources
from shared.model.values import replace
from tests import builders as make


def test_allocatable_is_capacity_less_overhead_and_never_negative() -> None:
    overhead = Overhead(
        kube_reserved=Resources.of(cpu=500, memory=make.GIB),
        system_reserved=Resources.of(cpu=200),
        eviction_threshold=Resources.of(memory=9 * make.GIB),
    )
    one = make.instance_type(overhead=overhead)
    assert one.allocatable == Resources.from_mapping(
        {"cpu": 1300, "pods": 29, "ephemeral-storage": 20 * make.GIB}
    )


def test_the_largest_capacity_of_a_planned_node_covers_its_fallback() -> None:
    large = make.option(200_000, name="m5.xlarge", capacity=Resources.of(cpu=4000, memory=1))
    node = make.planned(options=(make.option(),), fallback=(large,))
    assert node.price_micros_per_hour == 96_000
    assert node.largest_capacity == Resources.of(cpu=4000, memory=8 * make.GIB, pods=29)


def test_names_of_pods_slots_and_instances() -> None:
    one = make.pod("a", namespace="shop")
    assert one.key == make.ref(one).key == "shop/a"
    assert make.slot(3, plan_id="p", group=2).name == "p/2/3"
    instance = Instance(instance_id="i-1", state="pending", offering=make.offering())
    assert instance.provider_id == "aws:///us-east-1a/i-1"
    assert instance.is_alive
    stopped = Instance(instance_id="i-1", state="stopped", offering=make.offering())
    assert not stopped.is_alive
    assert not stopped.is_terminating


@pytest.mark.parametrize(
    ("changes", "initialized"),
    [
        ({"labels": {keys.INITIALIZED: "true"}}, True),
        ({}, False),
        ({"labels": {keys.INITIALIZED: "true"}, "taints": (make.NOT_READY,)}, False),
    ],
)
def test_a_node_says_whether_it_is_initialized(
    changes: dict[str, Any], *, initialized: bool
) -> None:
    assert make.node(**changes).is_initialized is initialized


@pytest.mark.parametrize(
    ("provider_id", "instance_id"),
    [
        ("aws:///us-east-1a/i-0abc", "i-0abc"),
        ("", ""),
        ("gce:///zone/i-0abc", ""),
        ("aws:///us-east-1a/fargate-ip", ""),
    ],
)
def test_the_instance_of_a_node_is_read_from_its_provider_id(
    provider_id: str, instance_id: str
) -> None:
    assert make.node(provider_id=provider_id).instance_id == instance_id


def test_a_node_is_of_dovetail_only_with_annotation_label_and_finalizer() -> None:
    assert make.node().is_ours
    assert not make.node(finalizers=()).is_ours
    assert not make.node(labels={}).is_ours
    assert not replace(make.node(), annotations={}).is_ours


@pytest.mark.parametrize(
    "changes",
    [
        {"node_name": "n1"},
        {"unschedulable": False},
        {"gated": True},
        {"nominated_node": "n1"},
        {"deletion_at": make.NOW},
        {"phase": "Failed"},
        {"owner": ControllerRef(kind="DaemonSet", name="d", uid="d")},
        {"owner": ControllerRef(kind="Node", name="n", uid="n")},
    ],
)
def test_only_pods_that_wait_for_capacity_are_provisionable(changes: dict[str, Any]) -> None:
    assert make.pod().is_provisionable
    assert make.pod(owner=None).is_provisionable
    assert not make.pod(**changes).is_provisionable


def test_daemon_static_and_ended_pods_do_not_keep_a_node_from_being_empty() -> None:
    assert make.pod(node_name="n1").counts_for_emptiness
    assert not make.pod(node_name="n1", phase="Succeeded").counts_for_emptiness
    for kind in ("DaemonSet", "Node"):
        owner = ControllerRef(kind=kind, name="o", uid="o")
        assert not make.pod(node_name="n1", owner=owner).counts_for_emptiness
        assert not make.pod(node_name="n1", owner=owner).keeps_its_node


def test_a_pod_that_leaves_keeps_its_node_for_its_successor_alone() -> None:
    assert make.pod(node_name="n1").keeps_its_node
    assert not make.pod(node_name="n1", deletion_at=make.NOW).keeps_its_node
    assert not make.pod(node_name="n1", deletion_at=make.NOW, owner=None).keeps_its_node
    last = ControllerRef(kind="StatefulSet", name="db", uid="db")
    assert make.pod(node_name="n1", deletion_at=make.NOW, owner=last).keeps_its_node


def test_a_selector_with_nothing_in_it_selects_all_pods() -> None:
    assert LabelSelector().selects({})
    wanted = LabelSelector(
        match_labels=(("app", "web"),), requirements=make.needs("tier", "NotIn", "test")
    )
    assert wanted.selects({"app": "web"})
    assert wanted.selects({"app": "web", "tier": "front"})
    assert not wanted.selects({"app": "web", "tier": "test"})
    assert not wanted.selects({"tier": "front"})


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration(key="k", value="v"), True),
        (Toleration(key="k", value="w"), False),
        (Toleration(key="k", operator="Exists"), True),
        (Toleration(key="j", operator="Exists"), False),
        (Toleration(operator="Exists"), True),
        (Toleration(operator="Exists", effect=Effect.NO_EXECUTE), False),
        (Toleration(value="v"), False),
    ],
)
def test_a_toleration_accepts_a_taint(toleration: Toleration, *, tolerated: bool) -> None:
    taint = Taint(key="k", value="v", effect=Effect.NO_SCHEDULE)
    assert toleration.tolerates(taint) is tolerated
    assert first_untolerated([taint], [toleration]) == (None if tolerated else taint)


def test_a_soft_taint_keeps_no_pod_away() -> None:
    soft = Taint(key="k", effect=Effect.PREFER_NO_SCHEDULE)
    assert first_untolerated([soft], []) is None
    assert soft.describe() == "k:PreferNoSchedule"
    assert Taint(key="k", value="v", effect=Effect.NO_EXECUTE).describe() == "k=v:NoExecute"


@pytest.mark.parametrize(
    ("key", "restricted"),
    [
        (keys.HOSTNAME, True),
        (keys.PROVISIONER_NAME, True),
        (keys.EMPTINESS_TIMESTAMP, True),
        ("karpenter.sh/anything", True),
        ("karpenter.k8s.aws/anything", True),
        ("sub.kubernetes.io/x", True),
        ("k8s.io/x", True),
        (keys.ZONE, False),
        ("beta.kubernetes.io/arch", False),
        (keys.CAPACITY_TYPE, False),
        ("team", False),
        ("example.com/team", False),
        ("notkubernetes.io/x", False),
        ("kops.k8s.io/instancegroup", False),
        ("node.kubernetes.io/role", False),
        ("a.node-restriction.kubernetes.io/x", False),
    ],
)
def test_labels_of_other_projects_are_restricted(key: str, *, restricted: bool) -> None:
    assert keys.is_restricted(key) is restricted


def test_the_gap_of_a_plan_is_its_excess_over_the_bound() -> None:
    assert Plan().gap_percent == 0
    plan = Plan(cost_micros_per_hour=110, lower_bound_micros_per_hour=100)
    assert plan.gap_percent == pytest.approx(10)


def test_errors_say_whether_a_call_may_be_repeated() -> None:
    throttled = ThrottledError("slow down", delay=timedelta(seconds=3))
    assert isinstance(throttled, RetryableError)
    assert throttled.delay == timedelta(seconds=3)
    assert ConflictError("x").delay is None
    assert issubclass(PermanentError, AutoscalerError)
    hostile = InvalidManifestError(field="spec.a\nb", value="x" * 300 + "\x1b", remedy="write é")
    assert str(hostile) == f"spec.a\\nb: '{'x' * 199}…: write é"
    error = InvalidManifestError(field="spec.weight", value=0, remedy="use 1 to 100")
    assert str(error) == "spec.weight: 0: use 1 to 100"
    assert (error.field, error.value, error.remedy) == ("spec.weight", 0, "use 1 to 100")


def test_offerings_sort_by_name_zone_and_capacity_type() -> None:
    spot = make.offering(capacity_type=CapacityType.SPOT)
    assert sorted([spot, make.offering()]) == [make.offering(), spot]
