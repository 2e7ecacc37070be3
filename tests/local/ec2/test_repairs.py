"""Replaced names are still there and come back; what is not emulated is a proper error."""

import threading
from importlib import metadata
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto.ec2.models.instances import Instance, InstanceBackend
from moto.ec2.responses.fleets import Fleets

from infra.local.aws.control import Control
from infra.local.aws.ec2 import install
from infra.local.aws.ec2.schedule import Agenda
from infra.local.aws.moto_patches import MOTO_VERSION, RepairError, Repairs, check_version

REPLACED = {
    "AmiBackend.describe_images",
    "EC2Response.call_action",
    "EKSResponse.create_access_entry",
    "EKSResponse.create_addon",
    "EKSResponse.delete_access_entry",
    "EKSResponse.delete_addon",
    "EKSResponse.describe_access_entry",
    "EKSResponse.describe_addon",
    "EKSResponse.list_access_entries",
    "Fleets.create_fleet",
    "Instance.private_dns_name",
    "Instance.private_ip_address",
    "InstanceBackend.run_instances",
    "InstanceBackend.stop_instances",
    "InstanceBackend.terminate_instances",
    "InstanceResponse.describe_instance_topology",
    "InstanceResponse.describe_instance_type_offerings",
    "InstanceResponse.describe_instance_types",
    "InstanceResponse.describe_instances",
    "InstanceResponse.terminate_instances",
    "LaunchTemplateBackend.create_launch_template",
    "LaunchTemplateBackend.delete_launch_template",
    "LaunchTemplates.describe_launch_templates",
    "SpotInstances.describe_spot_price_history",
    "Subnet.available_ip_address_count",
    "Subnet.get_available_subnet_ip",
    "TaggedEC2Resource.get_tags",
}


def test_the_emulator_is_the_version_that_was_read() -> None:
    check_version()
    assert metadata.version("moto") == MOTO_VERSION


def test_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda _: "9.9.9")
    with pytest.raises(RepairError, match=r"moto 9\.9\.9 is installed"):
        check_version()


def test_exactly_these_names_are_replaced(account: Any) -> None:
    names = {name for name in account.installation.repairs.names if "{0}" not in name}
    assert names == REPLACED


def test_a_name_that_is_gone_fails_loudly() -> None:
    repairs = Repairs()
    with pytest.raises(RepairError, match=r"no Fleets\.create_armada"):
        repairs.replace(Fleets, "create_armada", lambda self: self)
    with pytest.raises(RepairError, match="takes"):
        repairs.replace(
            InstanceBackend, "get_instance", lambda self: self, parameters=("self", "name")
        )
    with pytest.raises(RepairError, match="exists by now"):
        repairs.add(Fleets, "create_fleet", lambda self: self)
    with pytest.raises(RepairError, match="exists by now"):
        repairs.route({"/": 1}, "/", 2)
    assert repairs.names == ()


def test_undo_restores_own_and_inherited_names() -> None:
    class Base:
        def hello(self) -> str:
            return "base"

    class Child(Base):
        def bye(self) -> str:
            return "child"

    repairs = Repairs()
    repairs.replace(Child, "hello", lambda self: "new", parameters=("self",))
    repairs.replace(Child, "bye", lambda self: "new")
    repairs.add(Child, "more", lambda self: "new")
    assert (Child().hello(), Child().bye()) == ("new", "new")
    repairs.undo()
    assert (Child().hello(), Child().bye(), hasattr(Child, "more")) == ("base", "child", False)
    assert "hello" not in vars(Child)


def test_a_second_install_is_refused_and_changes_nothing(account: Any) -> None:
    before = vars(Instance)["private_dns_name"]
    with pytest.raises(RepairError):
        install(Control(url=""), agenda=Agenda(threaded=False))
    assert vars(Instance)["private_dns_name"] is before


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("get_spot_placement_scores", {"TargetCapacity": 1}),
        ("describe_capacity_reservations", {}),
        ("describe_placement_groups", {}),
        ("describe_subnets", {"Filters": [{"Name": "colour", "Values": ["red"]}]}),
    ],
)
def test_what_is_not_emulated_is_a_proper_error(
    account: Any, cluster: dict[str, Any], call: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(ClientError) as refusal:
        getattr(account.ec2, call)(**arguments)
    assert refusal.value.response["Error"]["Code"] == "UnsupportedOperation"
    assert refusal.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400


def test_the_agenda_runs_in_order_of_time_then_of_asking() -> None:
    clock = [0.0]
    done: list[str] = []
    agenda = Agenda(monotonic=lambda: clock[0], threaded=False)
    agenda.after(2, lambda: done.append("late"))
    agenda.after(1, lambda: done.append("first"))
    agenda.after(1, lambda: done.append("second"))
    agenda.after(0, lambda: done.append("now"))
    assert (agenda.run_due(), done) == (0, ["now"])
    clock[0] = 2
    assert (agenda.run_due(), done) == (3, ["now", "first", "second", "late"])


def test_the_agenda_thread_survives_a_failing_action(caplog: pytest.LogCaptureFixture) -> None:
    agenda = Agenda()
    done = threading.Event()

    def fail() -> None:
        raise ValueError("bus is down")

    agenda.after(0.001, fail)
    agenda.after(0.002, done.set)
    assert done.wait(timeout=60)
    agenda.close()
    assert "an action of the EC2 agenda failed" in caplog.text
