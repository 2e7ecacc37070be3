"""Resources that no instance type has."""

import pytest

from shared.planning.offerings.unknown_resources import unknown_resources


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nvidia.com/mig-1g.5gb", "a part of a GPU (MIG)"),
        ("nvidia.com/gpu.shared", "a GPU in time slices"),
        ("aws.amazon.com/neurondevice", "the former name of aws.amazon.com/neuron"),
        ("vpc.amazonaws.com/pod-eni", "an interface for security groups of pods"),
        ("vpc.amazonaws.com/PrivateIPv4Address", "an address of a Windows node"),
        ("example.com/fpga", "a device plugin may show it on nodes that run"),
    ],
)
def test_a_resource_is_told_for_what_it_is(name: str, told: str) -> None:
    assert unknown_resources([name]).startswith(f"no instance type has {name}: {told}")
