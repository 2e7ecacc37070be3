"""Nodes of NodePools that are empty or that drifted."""

from datetime import timedelta
from typing import Any

import pytest

from shared.disruption.consolidation import DisruptionMethod
from shared.disruption.drift import drift_of, shape_hash, stamp_of
from shared.disruption.evaluation import InstanceImages
from shared.manifests.custom_resources.node_pools import decode_node_pool
from shared.model import labels as keys
from shared.model.kubernetes.pods import ControllerRef
from shared.model.provisioner import Provisioner
from tests.builders import NOW, OTHER_SHAPE, affinity, instance_type, pod, ref, slot
from tests.karpenter_cases.scheduling.writing import wants
from tests.karpenter_cases.v1.disruption.scenes import of_pool, saving, scene, some
from tests.karpenter_cases.v1.reading import CLASSES
from tests.karpenter_cases.v1.worlds import changed_class, named_pool, stand, world
from tests.unit.disruption.clusters import changed, looked, on
from tests.unit.manifests.documents import CLASS_REF, node_class, node_pool

DAEMON = ControllerRef(kind="DaemonSet", name="d", uid="d")
OLD = OTHER_SHAPE
POLICIES = ("WhenEmpty", "WhenEmptyOrUnderutilized")
TAINT = {"key": "team", "effect": "NoSchedule"}


# --- empty nodes


def test_empty_nodes_go_together() -> None:
    found = changed(scene(*some(3)))
    assert (found.method, found.remove) == (DisruptionMethod.EMPTY, ("n0", "n1", "n2"))


def test_nodes_with_pods_that_stay_with_them_are_empty() -> None:
    daemon = on("n0", owner=DAEMON)
    assert changed(scene(*some(1), bound=(daemon,))).remove == ("n0",)


def test_of_pods_that_leave_only_those_of_statefulsets_keep_their_node() -> None:
    last = ControllerRef(kind="StatefulSet", name="db", uid="db")
    leaving: dict[str, Any] = {"deletion_at": NOW + timedelta(days=1)}
    assert changed(scene(*some(1), bound=(on("n0", **leaving),))).method == DisruptionMethod.EMPTY
    successor = on("n0", owner=last, **leaving)
    assert looked(scene(*some(1), bound=(successor,))).change is None
    room = of_pool("n1", annotations={keys.DO_NOT_DISRUPT: "true"})
    moved = changed(scene(*some(1), room, bound=(successor, on("n1", cpu=1000))))
    assert (moved.method, moved.remove) == (DisruptionMethod.DELETE, ("n0",))
    assert [ref.name for placed in moved.plan.placements for ref in placed.pods] == ["n0-0"]


def test_a_node_that_a_pending_pod_will_use_stays() -> None:
    coming = slot(instance_id="i-n0", node_name="n0", pods=(ref(pod("coming")),))
    assert looked(scene(*some(1), slots=(coming,))).change is None


def test_an_empty_node_that_drifted_goes() -> None:
    owner = saving(labels={"team": "new"})
    seen = scene(of_pool("n0", annotations=OLD), pools=(owner,))
    assert changed(seen).remove == ("n0",)


# --- what counts as drift


def decoded(
    spec: dict[str, Any] | None = None, metadata: dict[str, Any] | None = None, **more: Any
) -> Provisioner:
    return decode_node_pool(node_pool(spec, metadata, **more), CLASSES | {"other": node_class()})


@pytest.mark.parametrize(
    ("spec", "metadata"),
    [
        ({}, {"labels": {"team": "a"}}),
        ({}, {"annotations": {"team": "a"}}),
        ({"taints": [TAINT]}, {}),
        ({"startupTaints": [TAINT]}, {}),
        ({"nodeClassRef": {**CLASS_REF, "name": "other"}}, {}),
    ],
    ids=["label", "annotation", "taint", "startup-taint", "class"],
)
def test_what_shapes_nodes_makes_them_drift(spec: dict[str, Any], metadata: dict[str, Any]) -> None:
    node = of_pool("a", annotations=stamp_of(decoded()))
    assert drift_of(node, decoded()) == ""
    assert drift_of(node, decoded(spec, metadata)) == "nodepool default has changed"


@pytest.mark.parametrize(
    "other",
    [
        {"weight": 7},
        {"limits": {"cpu": 7}},
        {"disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "7m"}},
        {"spec": {"requirements": [wants(keys.ARCH, "In", "amd64")]}},
    ],
    ids=["weight", "limits", "disruption", "requirements"],
)
def test_what_shapes_no_node_leaves_the_hash(other: dict[str, Any]) -> None:
    assert shape_hash(decoded(**other)) == shape_hash(decoded())


def aliased(alias: str, **more: Any) -> Provisioner:
    terms = [{"alias": alias}]
    return decode_node_pool(node_pool(), {"nodes": changed_class(amiSelectorTerms=terms, **more)})


def test_to_pin_the_image_that_runs_is_no_drift_and_to_pin_another_is() -> None:
    newest, pinned = aliased("al2023@latest"), aliased("al2023@v20260120")
    node = of_pool("a", annotations=stamp_of(newest))
    assert drift_of(node, pinned, "ami-new", "ami-new") == ""
    assert drift_of(node, pinned, "ami-new", "ami-old") == "image ami-new is no longer current"


def test_another_family_is_drift_by_its_user_data_or_by_its_image() -> None:
    before = aliased("al2023@latest")
    node = of_pool("a", annotations=stamp_of(before))
    assert drift_of(node, aliased("bottlerocket@latest")) == "nodepool default has changed"
    assert drift_of(node, aliased("al2023@latest", amiFamily="AL2023")) == ""
    custom = of_pool("a", annotations=stamp_of(aliased("al2023@latest", amiFamily="Custom")))
    other = aliased("bottlerocket@latest", amiFamily="Custom")
    assert drift_of(custom, other, "ami-al", "ami-br") == "image ami-al is no longer current"


@pytest.mark.parametrize("field", ["taints", "startupTaints"])
def test_taints_in_another_order_are_no_drift(field: str) -> None:
    taints = [TAINT, {"key": "team", "value": "a", "effect": "NoExecute"}]
    node = of_pool("a", annotations=stamp_of(decoded({field: taints})))
    assert drift_of(node, decoded({field: taints[::-1]})) == ""
    assert drift_of(node, decoded({field: taints[:1]})) == "nodepool default has changed"


def with_requirement(*written: str) -> Provisioner:
    return decoded({"requirements": [wants(*written)]})


@pytest.mark.parametrize(
    ("requirement", "drifts"),
    [
        ((keys.INSTANCE_TYPE, "In", "m5.large"), False),
        ((keys.INSTANCE_TYPE, "NotIn", "m5.large"), True),
        ((keys.ZONE, "In", "us-east-1b"), True),
    ],
    ids=["allowed", "excluded", "other-zone"],
)
def test_a_requirement_that_excludes_a_label_is_drift(
    requirement: tuple[str, ...], *, drifts: bool
) -> None:
    assert bool(drift_of(of_pool("a"), with_requirement(*requirement))) is drifts


@pytest.mark.parametrize(
    ("operator", "values", "lacks", "has"),
    [
        ("In", ("5",), True, False),
        ("In", ("5", "6"), True, False),
        ("Exists", (), True, False),
        ("Gt", ("4",), True, False),
        ("NotIn", ("6",), False, False),
        ("DoesNotExist", (), False, True),
    ],
)
def test_a_requirement_for_a_label_that_the_node_lacks(
    operator: str, values: tuple[str, ...], *, lacks: bool, has: bool
) -> None:
    owner = with_requirement("example.com/size", operator, *values)
    assert bool(drift_of(of_pool("a"), owner)) is lacks
    assert bool(drift_of(of_pool("a", labels={"example.com/size": "5"}), owner)) is has


def test_a_node_without_a_hash_does_not_drift() -> None:
    assert drift_of(of_pool("a"), decoded({"taints": [TAINT]})) == ""


def test_the_shape_comes_before_requirements_and_these_before_the_image() -> None:
    owner = with_requirement(keys.INSTANCE_TYPE, "NotIn", "m5.large")
    image = ("ami-old", "ami-new")
    assert drift_of(of_pool("a", annotations=OLD), owner, *image) == "nodepool default has changed"
    assert drift_of(of_pool("a"), owner, *image).startswith("requirement ")
    assert drift_of(of_pool("a"), decoded(), *image) == "image ami-old is no longer current"


def drifted(node: Any, owner: Provisioner, *bound: Any, image: str = "", **more: Any) -> Any:
    seen = scene(node, bound=bound, pools=(owner,), **more)
    images = InstanceImages(of_instance={"i-a": image}, current={"i-a": "ami-new"})
    return looked(seen, images=images).change


QUIET: dict[str, Any] = {"disruption": {"consolidateAfter": "Never"}}


def test_a_node_that_is_not_launched_or_has_no_pool_does_not_drift() -> None:
    owner = saving(labels={"team": "new"}, **QUIET)
    assert drifted(of_pool("a", annotations=OLD), owner, on("a")) is not None
    starting = of_pool("a", annotations=OLD, labels={keys.INITIALIZED: ""}, ready=None)
    assert drifted(starting, owner, on("a")) is None
    assert drifted(of_pool("a", annotations=OLD, owner="gone"), owner, on("a")) is None


def test_a_change_that_is_undone_is_no_drift() -> None:
    before, after = saving(**QUIET), saving(labels={"team": "new"}, **QUIET)
    node = of_pool("a", annotations=stamp_of(before))
    assert drifted(node, after, on("a")) is not None
    assert drifted(node, before, on("a")) is None


def test_an_image_that_is_no_longer_found_is_drift() -> None:
    owner = saving(**QUIET)
    assert drifted(of_pool("a"), owner, on("a"), image="ami-old").why.startswith("image ami-old")
    assert drifted(of_pool("a"), owner, on("a"), image="ami-new") is None


def sold(*names: str, **more: Any) -> Any:
    return tuple(instance_type(name, **more) for name in names)


@pytest.mark.parametrize(
    ("types", "gone"),
    [
        (sold("m5.large", "m5.xlarge"), False),
        (sold("m5.xlarge"), True),
        (sold("m5.large", zones=("us-east-1c",)), True),
    ],
    ids=["sold", "no-type", "no-offering"],
)
def test_a_type_or_offering_that_is_gone_is_drift(types: Any, *, gone: bool) -> None:
    there = world(named_pool(disruption={"consolidateAfter": "Never"}), types=types)
    stand(there)
    there.cluster.add(pod(node_name="n1"))
    there.advance(timedelta(hours=1))
    there.provision(look=True)
    there.advance(timedelta(hours=12))
    there.provision(look=True)
    assert there.events("Disrupted") == []
    there.advance(timedelta(hours=1))
    there.provision(look=True)
    told = [event.message for event in there.events("Disrupted", "Node")]
    assert [text.startswith("drift: instance type m5.large") for text in told] == [True] * gone


def test_a_class_that_is_missing_is_no_drift() -> None:
    # Its NodePool cannot be used then: what its nodes should be is not known.
    node = of_pool("a", annotations=OLD, owner="wrong")
    assert drifted(node, saving(**QUIET), on("a")) is None


CHANGED = saving(labels={"team": "new"}, **QUIET)


@pytest.mark.parametrize("version", [{}, {keys.HASH_VERSION: "another"}])
def test_another_version_of_the_hash_is_no_drift(version: dict[str, str]) -> None:
    raw = named_pool(disruption={"consolidateAfter": "Never"})
    there = world(raw)
    stand(there, annotations={keys.PROVISIONER_HASH: "of another time", **version})
    there.cluster.add(pod(node_name="n1"))
    there.advance(timedelta(hours=1))
    there.provision(look=True)
    assert there.events("Disrupted") == []
    owner = decode_node_pool(raw, CLASSES)
    node = there.cluster.node_values["n1"]
    assert node.annotations.items() >= stamp_of(owner).items()


def odd(name: str, kind: str = "m5.large", minutes: int = 0, **more: Any) -> Any:
    return of_pool(name, kind, annotations=OLD, created_at=NOW - timedelta(minutes=minutes), **more)


def all_of(*nodes: Any, bound: tuple[Any, ...] = (), owner: Provisioner = CHANGED) -> Any:
    return looked(scene(*nodes, bound=bound, pools=(owner,)))


def test_a_drifted_node_is_replaced_by_one_by_several_or_by_none() -> None:
    one = all_of(odd("a"), bound=(on("a"),)).change
    assert (one.method, len(one.plan.nodes)) == (DisruptionMethod.REPLACE, 1)
    apart = tuple(on("a", n, anti_affinity=(affinity(),)) for n in range(3))
    several = all_of(odd("a", "m5.2xlarge"), bound=apart).change
    assert len(several.plan.nodes) == 3
    hashed = stamp_of(CHANGED)
    fresh = of_pool("room", annotations=hashed, labels={"team": "new"})
    none = all_of(odd("a"), fresh, bound=(on("a"),)).change
    assert (none.method, none.remove) == (DisruptionMethod.DELETE, ("a",))


def test_one_that_cannot_go_leaves_the_next() -> None:
    rare = {"example.com/rare": 1}
    found = all_of(odd("a", minutes=9), odd("b"), bound=(on("a", extra=rare), on("b"))).change
    assert found.remove == ("b",)


def test_empty_ones_go_first_then_the_oldest() -> None:
    nodes = (odd("a"), odd("b", minutes=9), odd("c", minutes=5), odd("empty"))
    bound = tuple(on(name, cpu=1500) for name in "abc")
    assert all_of(*nodes, bound=bound).change.remove == ("empty",)
    assert all_of(*nodes[:3], bound=bound).change.remove == ("b",)


@pytest.mark.parametrize("after", ["1m", "Never"])
@pytest.mark.parametrize("policy", POLICIES)
def test_nodes_drift_under_each_policy(policy: str, after: str) -> None:
    disruption = {"consolidationPolicy": policy, "consolidateAfter": after}
    owner = saving(labels={"team": "new"}, disruption=disruption)
    found = all_of(odd("a"), bound=(on("a"),), owner=owner).change
    assert found.cause == "drift"
