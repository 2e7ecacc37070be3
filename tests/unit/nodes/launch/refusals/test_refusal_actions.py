"""Refusals because of a request's content: reported, not retried at once, no harm to others."""

import pytest

from functions.cli.doctor.doctor import Doctor
from functions.cli.doctor.why import Why
from shared.model import labels as keys
from shared.model.brakes import Brakes, Ceiling
from shared.model.ec2.instance_types import CapacityType
from shared.model.errors import NotFoundError, UnauthorizedError
from shared.model.values import replace
from shared.nodes.timers.heartbeats import save_forwarder_heartbeat
from shared.ports import Subnet
from tests.builders import CATALOG, ZONES, instance_type, needs, pod, pods, provisioner
from tests.unit.nodes.launch.launches import ANY_WAY, apart, intents
from tests.unit.nodes.launch.refusals.refusing import (
    condition,
    fill,
    marked,
    refuse,
    subnets,
    types,
    with_profile,
    without_profile,
)
from tests.unit.worlds import MINUTE, NAME, SECOND, World, failing, instead


def test_profile_that_does_not_exist_is_reported_and_another_provisioner_serves_at_once() -> None:
    wrong = with_profile("wrong", "gone", weight=10)
    world = World(wrong, provisioner(), *pods(3))
    without_profile(world, "gone")
    report = world.provision()
    # The second Provisioner bought in the same run; EC2 was asked once for the first.
    assert len(world.bound) == 3
    assert len(world.cloud.fleets) == 2
    assert report.failed_attempts == 1
    # Nothing is marked: not for others, and not for this cluster.
    assert marked(world) == frozenset()
    assert world.ledger.quotas_reached(world.clock.now()) == ()
    # People are told EC2's code and text, and what to do.
    (text,) = world.messages("LaunchRefused", "Provisioner")
    assert text.startswith("InvalidParameterValue: Value (gone) for parameter iamInstanceProfile")
    assert text.endswith(
        "check what the message names: tags, volumes, or leave out instanceProfile"
    )
    active, reason, message = condition(world, "wrong")
    assert (active, reason) == (False, "LaunchRefused")
    assert text in message
    assert "default" not in world.cluster.conditions
    assert report.refusals == (f"wrong: {text}",)


def test_doctor_and_why_tell_of_a_provisioner_that_is_refused_until_it_changes() -> None:
    world = World(with_profile("default", "gone"), pod())
    without_profile(world, "gone")
    save_forwarder_heartbeat(world.ledger, NAME, world.clock.now())
    bounded = Brakes(ceiling=Ceiling(max_price_micros_per_hour=100_000_000))
    world.ports = replace(world.ports, brakes=bounded)
    world.provision()
    (finding,) = Doctor(world.ports).findings()
    assert (finding.kind, finding.subject) == ("provisioner-refused", "default")
    assert finding.text.startswith("EC2 refuses its launches: InvalidParameterValue: Value (gone)")
    why = Why(world.ports)
    assert f"default: {finding.text}" in "".join(why.pod("default", "a").outlook)
    # Once it may be asked again, a plan is made as if it were not refused.
    world.clock.advance(MINUTE)
    assert why.pod("default", "a").waits_for == (f"Provisioner default: {finding.text}",)
    world.cluster.add(with_profile("default", "there"))
    assert Doctor(world.ports).findings() == ()


def test_pods_that_no_other_provisioner_serves_get_events_too() -> None:
    world = World(with_profile("default", "gone"), pod())
    without_profile(world, "gone")
    world.provision()
    (text,) = world.messages("FailedProvisioning", "Pod")
    assert text.startswith("default: EC2 refuses its launches: InvalidParameterValue: Value (gone)")
    assert "out of capacity" not in text


def test_want_of_capacity_that_ec2_names_beside_a_refusal_is_no_shortage() -> None:
    spot = with_profile("default", "gone", requirements=needs(keys.CAPACITY_TYPE, "In", "spot"))
    world = World(spot, pod())
    without_profile(world, "gone")
    report = world.provision()
    assert marked(world) == frozenset()
    assert len(world.cloud.fleets) == 1
    assert report.offerings_refused == 0
    assert not condition(world)[0]


def test_the_wake_comes_when_it_may_be_asked_again() -> None:
    world = World(provisioner(), pod())
    refuse(world)
    world.provision()
    assert world.outbox.wakes == [(NAME, MINUTE)]


def test_a_profile_that_was_created_just_now_delays_a_launch_by_seconds() -> None:
    world = World(with_profile("default", "new"), pod())
    world.cloud.profile_delay, born = 12 * SECOND, world.clock.now()
    instead(world.cloud, "profile_age", lambda _: world.clock.now() - born)
    world.provision()
    (text,) = world.messages("FailedProvisioning", "Pod")
    assert "EC2 may not know a new instance profile" in text
    while not world.bound:
        _, wait = world.outbox.wakes[-1]
        world.advance(wait)
        world.provision()
    assert world.clock.now() - born == 20 * SECOND
    assert len(world.messages("FailedProvisioning", "Pod")) == 1
    assert condition(world)[0]


def test_a_profile_that_stays_unknown_backs_off_after_two_minutes() -> None:
    world = World(with_profile("default", "gone"), pod())
    without_profile(world, "gone")
    waits = []
    for _ in range(8):
        world.provision()
        _, wait = world.outbox.wakes[-1]
        waits.append(wait / SECOND)
        world.advance(wait)
    assert waits == [5, 5, 10, 20, 40, 40, 60, 120]
    assert "asked again after" in condition(world)[2]


@pytest.mark.parametrize("mended", ["provisioner", "attachment", "subnets"])
def test_it_is_asked_again_at_once_when_what_is_declared_changes(mended: str) -> None:
    own = "" if mended == "attachment" else "gone"
    world = World(with_profile("default", own), pod())
    without_profile(world, "gone", "nodes")
    world.provision()
    assert len(world.cloud.fleets) == 1
    ports = world.ports
    if mended == "provisioner":
        world.cluster.add(with_profile("default", "there"))
    elif mended == "attachment":
        ports = replace(world.ports, instance_profile="there")
    else:
        world.cloud.subnets = (Subnet(subnet_id="new", zone=ZONES[0], free_addresses=9),)
    world.provision(ports=ports)
    assert len(world.cloud.fleets) == 2


def test_the_condition_is_true_again_at_the_first_success() -> None:
    world = World(with_profile("default", "gone"), pod())
    gone = without_profile(world, "gone")
    world.provision()
    assert not condition(world)[0]
    world.provisioning().report_provisioners()
    assert not condition(world)[0]
    gone.clear()
    world.advance(5 * SECOND)
    world.provision()
    assert condition(world) == (True, "Valid", "ready to launch nodes")
    assert len(world.bound) == 1


def test_a_provisioner_that_changed_is_no_longer_called_refused() -> None:
    world = World(with_profile("default", "gone"), pod())
    without_profile(world, "gone")
    world.provision()
    world.cluster.add(with_profile("default", "there"))
    world.provisioning().report_provisioners()
    assert condition(world)[0]


def test_one_type_that_is_refused_leaves_the_others() -> None:
    catalogue = (*CATALOG, instance_type("m5a.large", price=97_000))
    world = World(provisioner(), *apart(2), types=catalogue)
    refuse(world, "m5.large")
    world.provision()
    assert len(world.bound) == 2
    assert {instance.offering.instance_type for instance in world.alive} == {"m5a.large"}
    assert world.messages("LaunchRefused", "Provisioner")[0].startswith(
        "UnauthorizedOperation: as told; read what"
    )
    assert "default" not in world.cluster.conditions
    assert marked(world) == frozenset()
    # What was refused is not asked for again for a while.
    world.cluster.add(pod("more", cpu=1500, host_ports=(("0.0.0.0", "TCP", 80),)))
    world.provision()
    assert "m5.large" not in types(world)[-1]
    world.advance(10 * MINUTE)
    world.cluster.add(pod("again", cpu=1500, host_ports=(("0.0.0.0", "TCP", 80),)))
    world.provision()
    assert "m5.large" in types(world)[-1]


def test_a_type_that_is_all_that_was_asked_for_does_not_stop_its_provisioner_for_good() -> None:
    world = World(provisioner(), *apart(2))
    refuse(world, "m5.large")
    world.provision()
    assert world.alive == []
    world.advance(MINUTE)
    world.provision()
    assert {instance.offering.instance_type for instance in world.alive} == {"m5.xlarge"}
    assert condition(world)[0]


def test_spot_that_is_refused_leaves_on_demand() -> None:
    world = World(provisioner(requirements=ANY_WAY), pod())
    refuse(world, code="AuthFailure.ServiceLinkedRoleCreationNotPermitted", kind="spot")
    world.provision()
    assert [instance.offering.capacity_type for instance in world.alive] == [CapacityType.ON_DEMAND]
    assert "create-service-linked-role" in world.messages("LaunchRefused", "Provisioner")[0]


def test_a_provisioner_that_works_is_not_stopped_by_one_pod_with_refused_types() -> None:
    large = needs(keys.INSTANCE_TYPE, "In", "m5.2xlarge")
    world = World(provisioner(), *apart(1))
    refuse(world, "m5.2xlarge")
    world.provision()
    world.cluster.add(pod("big", cpu=500, required_terms=(large,)))
    world.provision()
    assert "default" not in world.cluster.conditions
    assert any("refuses, every" in text for text in world.messages("FailedProvisioning", "Pod"))
    world.cluster.add(pod("small", cpu=1500, host_ports=(("0.0.0.0", "TCP", 80),)))
    world.provision()
    assert "small" in world.bound


def test_a_type_that_a_zone_does_not_support_is_out_for_this_provisioner_alone() -> None:
    world = World(provisioner(), *apart(1))
    refuse(world, "m5.large", code="Unsupported")
    world.provision()
    assert len(world.bound) == 1
    assert marked(world) == frozenset()
    assert world.messages("LaunchRefused", "Provisioner") == []
    world.advance(29 * MINUTE)
    world.cluster.add(pod("more", cpu=1500, host_ports=(("0.0.0.0", "TCP", 80),)))
    world.provision()
    assert "m5.large" not in types(world)[-1]


def test_a_full_subnet_is_left_out_and_the_zone_has_another() -> None:
    world = World(provisioner(), pod())
    world.cloud.subnets = tuple(
        Subnet(subnet_id=name, zone=ZONES[0], free_addresses=free)
        for name, free in (("full", 9), ("roomy", 8))
    )
    fill(world, "full")
    world.provision()
    assert len(world.bound) == 1
    assert subnets(world) == [{"full"}, {"roomy"}]
    assert marked(world) == frozenset()
    world.cluster.add(*apart(1))
    world.provision()
    assert subnets(world)[-1] == {"roomy"}
    world.advance(3 * MINUTE)
    world.cluster.add(pod("late", cpu=1500, host_ports=(("0.0.0.0", "TCP", 80),)))
    world.provision()
    assert "full" in subnets(world)[-2]


def test_a_zone_whose_subnets_are_all_full_is_left_out() -> None:
    world = World(provisioner(), *apart(2))
    refuse(world, code="InsufficientFreeAddressesInSubnet", zone=ZONES[0])
    world.provision()
    assert len(world.bound) == 2
    assert ZONES[0] not in {instance.offering.zone for instance in world.alive}


def test_without_any_subnet_left_the_pods_events_name_the_refused_ones() -> None:
    world = World(provisioner(), pod())
    refuse(world, code="InvalidSubnetID.NotFound")
    world.provision()
    (text,) = world.messages("FailedProvisioning", "Pod")
    assert "EC2 refuses every subnet" in text
    assert f"subnet-{ZONES[0]}" in text


def test_quota_holds_for_its_family_in_all_clusters_and_smaller_types_may_fit() -> None:
    world = World(provisioner(), pod(cpu=3000))
    refuse(world, "m5.xlarge", "m5.2xlarge", code="VcpuLimitExceeded")
    world.provision()
    assert world.alive == []
    (mark,) = world.ledger.quotas_reached(world.clock.now())
    assert (mark.quota.family, mark.vcpus) == ("Standard", 4)
    assert "default" not in world.cluster.conditions
    world.cluster.add(pod("small"))
    world.provision()
    assert [instance.offering.instance_type for instance in world.alive] == ["m5.large"]
    world.advance(3 * MINUTE)
    assert world.ledger.quotas_reached(world.clock.now()) == ()


def test_transient_error_is_retried() -> None:
    world = World(provisioner(), pod())
    refuse(world, code="InternalError")
    world.provision()
    assert world.outbox.wakes == [(NAME, 2 * SECOND)]
    assert intents(world) == (1, 0)
    world.advance(2 * SECOND)
    world.provision()
    assert world.outbox.wakes[-1] == (NAME, 4 * SECOND)
    world.cloud.ordered.clear()
    world.advance(4 * SECOND)
    world.provision()
    assert len(world.bound) == 1
    assert len(world.cloud.fleets) == 3
    assert world.messages("LaunchRefused", "Provisioner") == []


def test_a_launch_template_that_ec2_does_not_show_for_two_minutes_is_a_refusal() -> None:
    world = World(provisioner(), pod())
    missing = NotFoundError("gone", code="InvalidLaunchTemplateName.NotFoundException", detail="x")
    instead(world.cloud, "create_fleet", failing(missing))
    start = world.clock.now()
    while not world.cluster.conditions:
        world.provision()
        world.advance(2 * SECOND)
    assert 2 * MINUTE <= world.clock.now() - start <= 4 * MINUTE
    assert "check launchTemplate" in world.messages("LaunchRefused", "Provisioner")[0]


@pytest.mark.parametrize(
    ("call", "code", "text", "unknown"),
    [
        ("create_fleet", "UnauthorizedOperation", "UnauthorizedOperation: denied; read what", 0),
        ("ensure_launch_template", "NeverHeardOf", "NeverHeardOf: denied; the code is not kn", 1),
    ],
)
def test_a_call_that_is_not_allowed_is_a_refusal(
    call: str, code: str, text: str, unknown: int
) -> None:
    world = World(provisioner(), pod())
    denied = UnauthorizedError(f"ec2 {call}", code=code, detail="denied")
    instead(world.cloud, call, failing(denied))
    report = world.provision()
    assert world.messages("LaunchRefused", "Provisioner")[0].startswith(text)
    assert not condition(world)[0]
    assert report.unknown_codes == unknown
    assert world.provision().refusals == ()


def test_open_launch_of_a_refused_provisioner_is_abandoned() -> None:
    world = World(with_profile("default", "gone"), *apart(1))
    without_profile(world, "gone")
    world.cloud.throttle_next("ensure_launch_template")
    world.provision()
    assert intents(world) == (1, 0)
    world.cluster.add(pod("small"))
    other = World(with_profile("default", "gone"), pod("small"))
    without_profile(other, "gone")
    other.provision()
    (name,) = (value for _, value in other.ledger.note_values if value.startswith("refused#"))
    world.ledger.note_values[NAME, name] = other.ledger.note_values[NAME, name]
    world.advance(3 * SECOND)
    world.provision()
    assert world.cloud.fleets == []
    assert intents(world) == (0, 1)
