"""What Provisioners could buy, and who may have it."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from shared.manifests.api.selector_map import selector_of
from shared.model import labels as keys
from shared.model.dialect import OwnerKind
from shared.model.ec2.instance_types import CapacityType, OfferingKey
from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.kubernetes.pods import Scheduling
from shared.model.kubernetes.taints import Effect, Taint, Toleration
from shared.model.provisioner import BlockDevice, KubeletConfiguration, NodeTemplate, Provisioner
from shared.model.resources import Resources
from shared.model.values import replace
from shared.planning.offerings.offering_index import OfferingIndex
from shared.planning.offerings.offering_table import OfferingTable
from shared.planning.rules.daemon_overhead import DaemonOverhead
from shared.planning.rules.labels_and_taints import accepted_terms, labels_accepted
from shared.planning.rules.limits import remaining_limits, used_capacity
from shared.planning.rules.node_constraints import could_buy, node_constraints_of
from shared.planning.rules.provisioner_offerings import (
    ProvisionerOffering,
    address_warnings,
    as_configured,
    never_with_image,
    node_labels,
    provisioner_offerings,
    usable_in_order,
)
from tests import builders as make
from tests.builders import ZONES, needs, provisioner, site

A, B, C = ZONES


def bought(
    owner: Provisioner, daemonsets: Sequence[DaemonSet] = (), **more: Any
) -> tuple[ProvisionerOffering, ...]:
    return provisioner_offerings(owner, site(), make.CATALOG, daemonsets, **more)


def names(found: tuple[ProvisionerOffering, ...]) -> list[str]:
    return [offer.instance_type.name for offer in found]


def test_requirements_choose_types_and_offerings() -> None:
    found = bought(provisioner(also=needs(keys.INSTANCE_CPU, "Gt", "2")))
    assert names(found) == ["m5.2xlarge", "m5.xlarge"]
    assert {offering.capacity_type for offering in found[0].offerings} == {CapacityType.ON_DEMAND}
    one_zone = bought(provisioner(also=needs(keys.ZONE, "In", B, "elsewhere")))
    assert [offering.zone for offering in one_zone[0].offerings] == [B]


def test_more_pods_than_addresses_are_told_of_the_types_that_may_be_bought() -> None:
    kinds = [
        replace(kind, capacity=Resources.of(cpu=2000, pods=pods))
        for kind, pods in zip(make.CATALOG, (110, 58, 29, 58), strict=False)
    ]
    fewer = [kind for kind in kinds if kind.capacity["pods"] < 110]
    owner = provisioner(kubelet=KubeletConfiguration(max_pods=110))
    (told,) = address_warnings(owner, kinds)
    least = min(fewer, key=lambda kind: kind.capacity["pods"])
    assert told.startswith(f"maxPods 110: {len(fewer)} instance types it may buy have fewer")
    assert f"({least.name}: 29)" in told
    only = provisioner(
        kubelet=KubeletConfiguration(max_pods=110),
        also=needs(keys.INSTANCE_TYPE, "In", least.name),
    )
    assert address_warnings(only, kinds)[0].startswith(
        "maxPods 110: 1 instance type it may buy has"
    )
    assert address_warnings(provisioner(), kinds) == ()
    few = provisioner(kubelet=KubeletConfiguration(max_pods=29))
    assert address_warnings(few, kinds) == ()


def test_only_zones_with_a_subnet_are_offered() -> None:
    found = provisioner_offerings(provisioner(), site(zones=(C,)), make.CATALOG, ())
    assert {offering.zone for offer in found for offering in offer.offerings} == {C}
    assert provisioner_offerings(provisioner(), site(zones=()), make.CATALOG, ()) == ()


def test_a_type_has_the_memory_that_nodes_have_shown_and_no_more_of_all_else() -> None:
    owner = provisioner(kubelet=KubeletConfiguration(system_reserved=Resources.of(cpu=200)))
    shown = {"m5.large": Resources.of(cpu=1500, memory=2**40, pods=99)}
    plain, limited = (
        {
            offer.instance_type.name: offer.available
            for offer in provisioner_offerings(owner, at, make.CATALOG, ())
        }
        for at in (site(), replace(site(), observed=shown))
    )
    large = {**dict(plain["m5.large"].items), "cpu": 1500, "memory": 2**40}
    assert limited == {**plain, "m5.large": Resources.from_mapping(large)}


def test_offerings_ec2_was_out_of_are_left_out() -> None:
    out = frozenset(make.offering(zone=zone) for zone in (A, B))
    found = {offer.instance_type.name: offer for offer in bought(provisioner(), unavailable=out)}
    assert [offering.zone for offering in found["m5.large"].offerings] == [C]
    assert len(found["m5.xlarge"].offerings) == 3


def test_types_without_an_image_are_never_offered() -> None:
    lacking = replace(site(), without_image=frozenset({"m5.large"}))
    for unavailable in (frozenset[OfferingKey](), None):
        found = provisioner_offerings(
            provisioner(), lacking, make.CATALOG, (), unavailable=unavailable
        )
        assert names(found) == ["m5.2xlarge", "m5.xlarge"]


def test_only_images_that_a_family_recommends_are_known_to_boot_no_machine_of_some_types() -> None:
    types = (make.instance_type("a1.large", arch="arm64"), make.instance_type("g5g.xlarge"))
    lacked = partial(never_with_image, instance_types=types)
    assert lacked(NodeTemplate()) == {"a1.large"}
    assert lacked(NodeTemplate(ami_family="AL2")) == {"g5g.xlarge"}
    assert lacked(NodeTemplate(ami_family="Custom", image_family="AL2023")) == {"a1.large"}
    assert lacked(NodeTemplate(ami_family="Windows2022")) == frozenset()
    assert lacked(NodeTemplate(launch_template="mine")) == frozenset()
    assert lacked(NodeTemplate(ami_selector=selector_of({"team": "red"}))) == frozenset()


def test_a_node_gets_its_makers_labels_and_every_settled_requirement() -> None:
    owner = provisioner(labels={"team": "red", keys.ARCH: "amd64"}, also=needs("tier", "In", "1"))
    assert node_labels(owner) == {
        "team": "red",
        "tier": "1",
        keys.PROVISIONER_NAME: "default",
    }


def test_a_well_known_label_of_a_provisioner_does_not_rename_machines() -> None:
    """`labels: {kubernetes.io/arch: arm64}` chooses arm64 machines, it does not relabel others."""
    wanted = needs(keys.ARCH, "In", "arm64")
    found = bought(provisioner(labels={keys.ARCH: "arm64"}, requirements=wanted))
    assert names(found) == ["c6g.large"]


def test_a_custom_label_that_cannot_exist_or_hold_offers_nothing() -> None:
    assert bought(provisioner(also=needs("team", "DoesNotExist")))
    impossible = needs("team", "In", "red").merge(needs("team", "NotIn", "red"))
    assert not bought(provisioner(also=impossible))


def test_node_pools_of_equal_weight_come_from_z_to_a_after_provisioners() -> None:
    listed = (
        provisioner("a", kind=OwnerKind.NODE_POOL),
        provisioner("c", kind=OwnerKind.NODE_POOL),
        provisioner("b"),
        provisioner("d"),
        provisioner("heavy", kind=OwnerKind.NODE_POOL, weight=1),
    )
    assert [owner.name for owner in usable_in_order(listed)] == ["heavy", "b", "d", "c", "a"]


def test_disk_and_kubelet_settings_change_what_a_machine_has() -> None:
    large = make.CATALOG[2]
    assert as_configured(provisioner(), large) is large
    disks = (
        BlockDevice(device_name="/dev/xvda", volume_size_gib=100),
        BlockDevice(device_name="/dev/xvdb", volume_size_gib=10),
    )
    owner = provisioner(
        template=NodeTemplate(block_devices=disks), kubelet=KubeletConfiguration(max_pods=7)
    )
    capacity = as_configured(owner, large).capacity
    assert (capacity["ephemeral-storage"], capacity["pods"]) == (100 * make.GIB, 7)


def test_an_image_family_says_what_its_machines_have() -> None:
    large = make.CATALOG[2]
    kubelet = KubeletConfiguration(pods_per_core=1)
    plain = as_configured(provisioner(kubelet=kubelet), large)
    rocket = NodeTemplate(ami_family="Bottlerocket")
    found = as_configured(provisioner(template=rocket, kubelet=kubelet), large)
    assert plain.capacity["pods"] < large.capacity["pods"]
    # It is never told that setting, so nothing may count on it.
    assert found.capacity["pods"] == large.capacity["pods"]
    assert found.volume_limit == plain.volume_limit - 1


def test_bottlerocket_reserves_memory_for_the_pods_that_its_kubelet_allows() -> None:
    large = make.CATALOG[2]
    prefixed = replace(large, image_max_pods=8)
    rocket = provisioner(template=NodeTemplate(ami_family="Bottlerocket"))
    assert as_configured(provisioner(), prefixed).allocatable == large.allocatable
    reserved = as_configured(rocket, prefixed).overhead.kube_reserved
    assert reserved["memory"] == (255 + 11 * large.capacity["pods"]) * make.MIB


def test_daemons_that_will_land_take_their_room() -> None:
    on_arm = make.daemonset("arm", node_selector=needs(keys.ARCH, "In", "arm64"))
    spot = make.daemonset("spot", cpu=30, node_selector=needs(keys.CAPACITY_TYPE, "In", "spot"))
    taint = Taint(key="only", effect=Effect.NO_SCHEDULE)
    everywhere = make.daemonset("every", cpu=50, tolerations=(Toleration(operator="Exists"),))
    listed = (make.daemonset(), on_arm, spot, everywhere)
    large = needs(keys.INSTANCE_TYPE, "In", "m5.large")
    (one,) = bought(provisioner(also=large), daemonsets=listed)
    assert one.daemon_requests["cpu"] == 150
    assert one.available["cpu"] == 1930 - 150
    either = needs(keys.CAPACITY_TYPE, "In", "spot", "on-demand").merge(large)
    (two,) = bought(provisioner(requirements=either), daemonsets=listed)
    # The capacity type is not settled yet, so room is kept for the spot daemon, too.
    assert two.daemon_requests["cpu"] == 180
    (tainted,) = bought(
        provisioner(taints=(taint,), also=needs(keys.INSTANCE_TYPE, "In", "m5.large")),
        daemonsets=listed,
    )
    assert tainted.daemon_requests["cpu"] == 50
    overhead = DaemonOverhead((spot,), ())
    assert overhead.on({keys.CAPACITY_TYPE: "on-demand"}) == (Resources(), ())
    assert overhead.on({keys.CAPACITY_TYPE: "spot"})[0]["cpu"] == 30


def test_daemons_of_places_that_no_offering_has_take_no_room_and_no_port() -> None:
    ports = (("0.0.0.0", "TCP", 9092),)
    spot = make.daemonset(
        "spot", node_selector=needs(keys.CAPACITY_TYPE, "In", "spot"), host_ports=ports
    )
    in_b = make.daemonset("in-b", node_selector=needs(keys.ZONE, "In", B), host_ports=ports)
    in_a = provisioner(also=needs(keys.ZONE, "In", A))
    (first, *_) = bought(in_a, (spot, in_b))
    assert (first.daemon_requests, first.ports) == (Resources(), ())
    (first, *_) = bought(provisioner(), (spot, in_b))
    assert (first.daemon_requests["cpu"], first.ports) == (100, ports)


def test_daemons_that_ask_only_that_a_node_has_a_host_name_take_room() -> None:
    listed = [
        make.daemonset(operator, cpu=cpu, node_selector=needs(keys.HOSTNAME, operator, *values))
        for operator, values, cpu in (("Exists", (), 1), ("NotIn", ("n1",), 2), ("In", ("n1",), 4))
    ]
    (first, *_) = bought(provisioner(), listed)
    assert first.daemon_requests["cpu"] == 1 + 2


def test_affinity_terms_are_alternatives_each_with_the_node_selector() -> None:
    wanted = Scheduling(
        requests=Resources(),
        node_selector=needs("a", "In", "1"),
        required_terms=(needs("b", "In", "1"), needs("b", "In", "2")),
    )
    assert len(accepted_terms(wanted)) == 2
    assert labels_accepted(wanted, {"a": "1", "b": "2"})
    assert not labels_accepted(wanted, {"a": "1", "b": "3"})
    assert not labels_accepted(wanted, {"a": "2", "b": "2"})


def test_offerings_are_grouped_by_the_pods_they_fit() -> None:
    anyone = make.scheduling()
    in_b = make.scheduling(node_selector=needs(keys.ZONE, "In", B))
    arm = make.scheduling(node_selector=needs(keys.ARCH, "In", "arm64"))
    either = make.scheduling(required_terms=(needs(keys.ZONE, "In", A), needs("x", "In", "y")))
    signatures = [node_constraints_of(scheduling) for scheduling in (anyone, in_b, arm, either)]
    pinned = node_constraints_of(anyone).pinned(needs(keys.ZONE, "In", C))
    large = next(offer for offer in bought(provisioner()) if offer.instance_type.name == "m5.large")
    launchables = OfferingIndex(OfferingTable((large,)), ())
    shapes, _, masks = launchables.node_types([*signatures, pinned], Resources())
    found = {
        tuple(mask >> number & 1 for mask in masks): [pool.zone for pool in shape.offerings]
        for number, shape in enumerate(shapes)
    }
    assert found == {(1, 0, 0, 1, 0): [A], (1, 1, 0, 0, 0): [B], (1, 0, 0, 0, 1): [C]}
    for signature in (*signatures, pinned):
        assert could_buy(signature, large) == bool(launchables.accepting(signature))


def test_offerings_no_pod_may_have_are_left_out() -> None:
    tainted = provisioner(taints=(Taint(key="only", effect=Effect.NO_SCHEDULE),))
    in_b = node_constraints_of(make.scheduling(node_selector=needs(keys.ZONE, "In", B)))
    (first, *_) = bought(provisioner())
    shapes, (ways,), _ = OfferingIndex(OfferingTable((first,)), ()).node_types([in_b], Resources())
    assert [launchable.offering.zone for launchable in ways] == [B]
    assert [pool.zone for shape in shapes for pool in shape.offerings] == [B]
    (first, *_) = bought(tainted)
    assert OfferingIndex(OfferingTable((first,)), ()).node_types([in_b], Resources())[0] == ()
    assert not could_buy(in_b, first)


def test_a_host_that_is_not_there_yet_cannot_be_asked_for() -> None:
    (first, *_) = bought(provisioner())
    launchables = OfferingIndex(OfferingTable((first,)), ())
    for operator, values, good in (("In", ("n1",), False), ("NotIn", ("n1",), True)):
        asked = make.scheduling(node_selector=needs(keys.HOSTNAME, operator, *values))
        signature = node_constraints_of(asked)
        assert could_buy(signature, first) == bool(launchables.accepting(signature)) == good


def test_limits_count_nodes_launches_and_reservations() -> None:
    limits = Resources.of(cpu=20_000, memory=64 * make.GIB)
    unlabelled = make.node("n3", capacity=Resources(), labels={keys.PROVISIONER_NAME: "default"})
    snapshot = make.snapshot(
        provisioners=(provisioner(limits=limits), provisioner("free")),
        nodes=(
            make.node("n1"),
            make.node("n2", capacity=Resources()),
            unlabelled,
            make.node("other", labels={keys.PROVISIONER_NAME: "free"}),
            make.node("s", capacity=Resources.of(cpu=3000), provider_id="aws:///z/i-slot1"),
            make.node("foreign", provider_id="", labels={keys.PROVISIONER_NAME: "default"}),
        ),
        slots=(make.slot(0), make.slot(1), make.slot(2, provisioner="free")),
        intents=(make.intent(), make.intent(group=1, provisioner="free")),
    )
    # n1, n2 by its type, s by the larger of node and slot, the foreign one, slot 0, the intent.
    assert used_capacity(snapshot)["default"]["cpu"] == 2000 + 2000 + 3000 + 2000 + 2000 + 2000
    left = remaining_limits(snapshot)
    assert set(left) == {"default"}
    assert left["default"]["cpu"] == 7000


def test_a_limit_that_is_used_up_stays_a_limit() -> None:
    owner = provisioner(limits=Resources.of(cpu=2000))
    left = remaining_limits(make.snapshot(provisioners=(owner,), nodes=(make.node(),)))
    assert left["default"].items == (("cpu", 0),)


def test_a_pool_that_uses_the_instance_store_counts_it_as_storage() -> None:
    plain = make.instance_type("m5d.large")
    disk = replace(plain, labels={**plain.labels, keys.INSTANCE_LOCAL_NVME: "75"})
    owner = provisioner(template=NodeTemplate(instance_store=True))
    assert as_configured(owner, disk).capacity["ephemeral-storage"] == 75 * 10**9
    assert as_configured(provisioner(), disk).capacity["ephemeral-storage"] != 75 * 10**9


def test_each_dialect_has_its_own_label_for_the_owner() -> None:
    assert node_labels(provisioner())[keys.PROVISIONER_NAME] == "default"
    labels = node_labels(provisioner(kind="NodePool"))
    assert labels[keys.NODE_POOL] == "default"
    assert keys.PROVISIONER_NAME not in labels
