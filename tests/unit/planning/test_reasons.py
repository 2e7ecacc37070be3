"""Why a pod fits nothing, in words people can act on."""

from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.dialect import OwnerKind
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.provisioner import Provisioner
from shared.model.resources import Resources
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.planning.decide import decide
from shared.planning.reasons import Reasons
from shared.planning.rules.pod_classes import group_by_class
from tests import builders as make
from tests.builders import needs, pod, pods, provisioner, snapshot
from tests.unit.planning.asking import QUICK

GPU = "nvidia.com/gpu"


def reason(other_pod: Pod, owner: Provisioner | None = None, **more: Any) -> str:
    """Return why a pod does not fit the one provisioner there is."""
    world = snapshot(other_pod, provisioners=(owner or provisioner(),), **more)
    (line,) = Reasons(world).of(group_by_class([other_pod])[0], frozenset())
    return line.removeprefix("default: ")


def test_without_a_provisioner_it_says_what_to_make() -> None:
    world: ClusterSnapshot = snapshot(pod(), provisioners=(provisioner(paused=True),))
    (line,) = Reasons(world).of(group_by_class([pod()])[0], frozenset())
    assert line.startswith("no usable NodePool or Provisioner: create one")


def test_each_provisioner_gets_a_line_in_the_order_they_are_tried() -> None:
    owners = (provisioner("a"), provisioner("b", weight=1))
    reasons = Reasons(snapshot(pod(), provisioners=owners))
    lines = reasons.of(group_by_class([pod()])[0], frozenset("a"))
    assert [line.split(":")[0] for line in lines] == ["b", "a"]


def test_a_taint_is_named_first() -> None:
    taint = Taint(key="only", effect=Effect.NO_SCHEDULE)
    assert reason(pod(), provisioner(taints=(taint,))) == "does not tolerate taint only:NoSchedule"


@pytest.mark.parametrize(
    ("sites", "text"),
    [
        ((), "no subnet: nothing was found"),
        ((make.site(zones=()),), "no subnet: nothing was found"),
        ((make.site(zones=(), reason="no tag"),), "no tag"),
    ],
)
def test_a_provisioner_without_subnets_says_so(sites: tuple[Any, ...], text: str) -> None:
    assert reason(pod(), sites=sites) == text


def test_requirements_that_leave_nothing_are_distinguished_from_pods_that_ask_too_much() -> None:
    owner = provisioner(also=needs(keys.INSTANCE_TYPE, "In", "x9.huge"))
    assert reason(pod(), owner) == (
        "its requirements leave no instance type in us-east-1a, us-east-1b, us-east-1c; "
        "requirement node.kubernetes.io/instance-type: no instance type here has x9.huge"
    )


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        (
            needs(keys.ARCH, "In", "arm64"),
            "needs kubernetes.io/arch in [arm64], offered amd64",
        ),
        (
            needs("instance-type", "In", "m5.large"),
            (
                "needs instance-type in [m5.large], offered no such label "
                "(did you mean node.kubernetes.io/instance-type?)"
            ),
        ),
        (
            needs("example.com/Capacity_Type", "Exists"),
            (
                "needs example.com/Capacity_Type exists, offered no such label "
                "(did you mean karpenter.sh/capacity-type?)"
            ),
        ),
        (needs("team", "In", "red"), "needs team in [red], offered no such label"),
        (
            needs(keys.ZONE_ID, "In", "use1-az1"),
            (
                "needs topology.k8s.aws/zone-id in [use1-az1], offered no such label (the cloud "
                "controller adds topology.k8s.aws/zone-id to nodes that exist: ask for "
                "topology.kubernetes.io/zone)"
            ),
        ),
        (
            needs(keys.ZONE_ID, "NotIn", "use1-az1"),
            (
                "needs topology.k8s.aws/zone-id not in [use1-az1], and every node of it has that "
                "label (the cloud controller adds topology.k8s.aws/zone-id to nodes that exist: "
                "ask for topology.kubernetes.io/zone)"
            ),
        ),
        (
            needs(keys.INSTANCE_CPU, "Gt", "64"),
            "needs karpenter.k8s.aws/instance-cpu >= 65, offered 2, 4, 8",
        ),
        (
            needs(keys.INSTANCE_CPU, "In", "8").merge(needs(keys.INSTANCE_TYPE, "In", "m5.large")),
            "no instance type has all labels it needs at once",
        ),
    ],
)
def test_the_label_nothing_has_is_named_with_what_is_offered(selector: Any, text: str) -> None:
    assert reason(pod(node_selector=selector)) == text


def test_labels_that_only_types_without_an_image_have_are_told_apart() -> None:
    lacking = replace(make.site(), without_image=frozenset({"c6g.large"}))
    owner = provisioner(requirements=needs(keys.CAPACITY_TYPE, "In", "on-demand"))
    arm = pod(node_selector=needs(keys.ARCH, "In", "arm64"))
    assert reason(arm, owner, sites=(lacking,)) == (
        "needs kubernetes.io/arch in [arm64], offered amd64; "
        "its images do not boot the types that would do"
    )
    other = pod(node_selector=needs("team", "In", "red"))
    assert reason(other, owner, sites=(lacking,)).endswith("offered no such label")


def test_long_lists_of_what_is_offered_are_cut() -> None:
    types = tuple(make.instance_type(f"m{n}.large") for n in range(1, 9))
    text = reason(pod(node_selector=needs(keys.INSTANCE_TYPE, "In", "x")), instance_types=types)
    assert text.endswith("offered m1.large, m2.large, m3.large, m4.large, m5.large and 3 more")


def test_the_reason_of_a_pod_that_is_too_large_names_the_most_there_is() -> None:
    assert reason(pod(cpu=90_000, memory=44 * make.GIB + 1)) == (
        "no instance type is large enough: requests cpu 90 (at most 7930m), "
        "memory 44.01Gi (at most 31.6Gi)"
    )


def test_a_resource_that_no_instance_type_has_is_told_with_what_to_do() -> None:
    assert reason(pod(cpu=90_000, extra={"hugepages-2Mi": 2**21, "vpc.amazonaws.com/efa": 1})) == (
        "no instance type has hugepages-2Mi: huge pages, which a node has where its system "
        "reserves some: ask for memory, or run such pods on nodes that Dovetail does not launch; "
        "no instance type has vpc.amazonaws.com/efa: an EFA interface, with which Dovetail "
        "launches no instance: run such pods on nodes that Dovetail does not launch"
    )


ESTIMATED = (
    "; of the 8Gi that EC2 sells, what nodes keep is an estimate until one has shown it: set "
    "vm_memory_overhead_percent"
)


@pytest.mark.parametrize(
    ("request_mib", "told"),
    [
        (8192, f"memory 8Gi (at most 7792Mi){ESTIMATED}"),
        (8193, "memory 8193Mi (at most 7792Mi)"),
    ],
    ids=["as much as is sold", "more than is sold"],
)
def test_memory_that_the_estimate_alone_refuses_is_told_apart(request_mib: int, told: str) -> None:
    large = make.instance_type("m5.large")
    sold = replace(large, labels={**large.labels, keys.INSTANCE_MEMORY: "8192"})
    text = reason(pod(memory=request_mib * make.MIB), instance_types=(sold,))
    assert text == f"no instance type is large enough: requests {told}"


def test_requirement_that_excludes_every_large_enough_type_is_named() -> None:
    accelerated = make.instance_type("g5.xlarge", extra={GPU: 1})
    types = (accelerated, make.instance_type("m5.large"))
    owner = provisioner(also=needs(keys.INSTANCE_FAMILY, "In", "m5"))
    assert reason(pod(extra={GPU: 1}), owner, instance_types=types) == (
        "no instance type is large enough: requests nvidia.com/gpu 1 (at most 0); types that have "
        "enough are excluded by karpenter.k8s.aws/instance-family in [m5]"
    )


def test_a_pod_whose_requests_no_type_fits_together_has_that_reason() -> None:
    types = (
        make.instance_type("c5.large", cpu=64_000),
        make.instance_type("r5.large", memory=256 * make.GIB),
    )
    text = reason(pod(cpu=32_000, memory=128 * make.GIB), instance_types=types)
    assert text == "no single instance type has enough of all it requests at once"


def test_capacity_ec2_was_out_of_is_tried_again() -> None:
    out = frozenset(
        make.offering(instance_type.name, zone=zone)
        for instance_type in make.CATALOG
        for zone in make.ZONES
    )
    assert reason(pod(), unavailable=out) == (
        "EC2 is out of capacity for every instance type that would hold it; tried again"
    )


def test_what_is_left_are_topology_rules() -> None:
    assert reason(pod()) == "its topology rules leave no place"


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param({"spreads": (make.spread(keys.ZONE_ID),)}, id="spread"),
        pytest.param({"affinity": (make.affinity(keys.ZONE_ID),)}, id="affinity"),
    ],
)
def test_topology_rules_over_zone_ids_are_answered_by_nodes_that_exist(rule: Any) -> None:
    assert reason(pod(**rule)) == (
        "its topology rules leave no place (the cloud controller adds topology.k8s.aws/zone-id to "
        "nodes that exist: ask for topology.kubernetes.io/zone)"
    )


def test_daemonsets_that_take_the_room_are_named() -> None:
    taking = [make.daemonset(name, cpu=cpu) for name, cpu in (("b", 900), ("a", 900), ("c", 1900))]
    text = reason(pod(cpu=7000), daemonsets=tuple(taking))
    told = (
        "on m5.2xlarge DaemonSet kube-system/c takes cpu 1900m, DaemonSet kube-system/a takes cpu "
        "900m, DaemonSet kube-system/b takes cpu 900m"
    )
    assert text.endswith(f"; {told}")
    more = reason(pod(cpu=7000), daemonsets=(*taking, make.daemonset("d", cpu=100)))
    assert more.endswith(f"; {told}, 1 more")
    # Without any of them it would not fit either.
    assert "DaemonSet" not in reason(pod(cpu=9000), daemonsets=tuple(taking))


def test_a_host_port_of_a_daemonset_is_named() -> None:
    port = ("0.0.0.0", "TCP", 9100)
    agent = make.daemonset(host_ports=(port,))
    assert reason(pod(host_ports=(port,)), daemonsets=(agent,)) == (
        "host port 9100/TCP is taken by DaemonSet kube-system/logs on every node"
    )
    other = pod(host_ports=(("0.0.0.0", "TCP", 80),))
    assert reason(other, daemonsets=(agent,)) == "its topology rules leave no place"


def test_a_label_that_must_be_absent_and_is_on_every_node_is_named() -> None:
    owner = provisioner(also=needs("team", "Exists"))
    assert reason(pod(node_selector=needs("team", "DoesNotExist")), owner) == (
        "needs team absent, and every node of it has that label"
    )


def test_of_labels_left_open_the_one_without_the_value_is_named() -> None:
    owner = provisioner(also=(*needs("a", "In", "1", "2"), *needs("b", "In", "1", "2")))
    asked = needs("a", "In", "1").merge(needs("b", "In", "3"))
    assert reason(pod(node_selector=asked), owner) == "needs b in [3], offered no such label"


def test_demands_that_exclude_each_other_are_named() -> None:
    wanted = needs(keys.ZONE, "In", "a").merge(needs(keys.ZONE, "In", "b"))
    assert reason(pod(node_selector=wanted)) == (
        f"what it asks of {keys.ZONE} contradicts itself: no value is right"
    )


def test_what_is_left_of_a_limit_is_what_the_plan_leaves() -> None:
    limited = provisioner(limits=Resources((("cpu", 3000),)))
    plan = decide(snapshot(*pods(2, cpu=1500), provisioners=(limited,)), QUICK)
    (lost,) = plan.unschedulable
    assert lost.reasons == ("default: its limits are in the way: cpu 1 left of 3",)


@pytest.mark.parametrize(
    ("kind", "gigabytes", "asked", "told"),
    [
        (OwnerKind.NODE_POOL, "75", {"ephemeral-storage": 60 * make.GIB}, True),
        (OwnerKind.NODE_POOL, "75", {"ephemeral-storage": 70 * make.GIB}, False),
        (OwnerKind.NODE_POOL, "0", {"ephemeral-storage": 60 * make.GIB}, False),
        (OwnerKind.NODE_POOL, "75", {"ephemeral-storage": 60 * make.GIB, "cpu": 90_000}, False),
        (OwnerKind.PROVISIONER, "75", {"ephemeral-storage": 60 * make.GIB}, False),
    ],
    ids=["enough", "too little", "none", "other things lack, too", "no such field"],
)
def test_a_pod_that_lacks_disk_is_told_what_gives_it_those_of_the_instance(
    *, kind: OwnerKind, gigabytes: str, asked: dict[str, int], told: bool
) -> None:
    plain = make.instance_type()
    labels = {**plain.labels, keys.INSTANCE_LOCAL_NVME: gigabytes}
    types = (replace(plain, labels=labels), make.instance_type("c6g.large", arch="arm64"))
    text = reason(
        pod(requests=Resources.from_mapping(asked)), provisioner(kind=kind), instance_types=types
    )
    remedy = "; the NVMe disks of m5.large have enough: set EC2NodeClass.spec.instanceStorePolicy"
    assert "ephemeral-storage" in text
    assert (remedy in text) is told
