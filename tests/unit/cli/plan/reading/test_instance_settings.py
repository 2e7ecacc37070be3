"""`plan --set` with the settings of machines."""

import pytest
from msgspec.structs import fields

from functions.cli.input_error import InvalidSettingError
from functions.cli.plan.instance_settings import described_instance_settings, instance_setup
from shared.instance_types.instance_setup import InstanceSetup
from shared.instance_types.pod_addresses import PodNetwork
from shared.settings import RefreshCatalogSettings


def test_they_are_those_of_the_control_plane_with_its_defaults() -> None:
    defaults = {field.name: field.default for field in fields(RefreshCatalogSettings)}
    explained = described_instance_settings()
    for key, default, meaning in explained:
        assert str(defaults[key]).lower() == default
        assert meaning.endswith(".")
    assert instance_setup([f"{key}={default}" for key, default, _ in explained]) == (
        InstanceSetup(memory_percent=7.5),
        (),
    )


def test_other_settings_are_left_and_the_last_of_a_key_counts() -> None:
    assert instance_setup(["max_options=3", "nonsense"]) == (None, ("max_options=3", "nonsense"))
    given = ["max_options=3", "reserved_interfaces=1", "prefix_delegation=TRUE"]
    network = PodNetwork(prefix_delegation=True, reserved_interfaces=2)
    assert instance_setup([*given, "reserved_interfaces=2", "vm_memory_overhead_percent=5.5"]) == (
        InstanceSetup(network=network, memory_percent=5.5),
        ("max_options=3",),
    )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("vm_memory_overhead_percent=51", "a percentage from 0 to 50"),
        ("vm_memory_overhead_percent=0.075x", "a percentage from 0 to 50"),
        ("reserved_interfaces=16", "a whole number from 0 to 15"),
        ("reserved_interfaces=-1", "a whole number from 0 to 15"),
        ("pod_interfaces=yes", "true or false"),
    ],
)
def test_a_value_that_is_none_is_refused_with_what_to_write(given: str, told: str) -> None:
    with pytest.raises(InvalidSettingError, match=told):
        instance_setup([given])
