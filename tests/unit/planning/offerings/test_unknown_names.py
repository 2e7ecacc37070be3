"""Names in pods that nothing answers."""

import pytest

from shared.model import labels as keys
from shared.planning.offerings.unknown_names import unknown_resources, unknown_topology_keys
from tests import builders as make


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


def test_a_topology_key_that_no_node_has_is_told_with_the_one_that_was_meant() -> None:
    term = make.affinity("topology.kubernetes.io/hostname")
    apart = make.pods(3, anti_affinity=(term,))
    racked = make.pod(
        "r", affinity=(make.affinity("rack"),), spreads=(make.spread("example.com/zones"),)
    )
    runs = make.pod("s", node_name="n1", spreads=(make.spread("unseen"),))
    gated = make.pod("t", gated=True, spreads=(make.spread("unseen"),))
    seen = make.snapshot(*apart, racked, gated, bound=(runs,))
    zoned, alone, hosted = unknown_topology_keys(seen)
    assert zoned == (
        "topology key example.com/zones of pod default/r: no node has such a label; did you mean "
        "topology.kubernetes.io/zone?"
    )
    assert alone == "topology key rack of pod default/r: no node has such a label"
    assert hosted == (
        "topology key topology.kubernetes.io/hostname of pod default/p000 and 2 more: no node has "
        "such a label; did you mean kubernetes.io/hostname?"
    )


def test_a_topology_key_of_a_node_a_requirement_or_a_machine_is_known() -> None:
    known = ("rack", "team", keys.ZONE, keys.HOSTNAME, keys.CAPACITY_TYPE, keys.INSTANCE_FAMILY)
    pods = [make.pod(str(n), spreads=(make.spread(key),)) for n, key in enumerate(known)]
    seen = make.snapshot(
        *pods,
        nodes=(make.node("n1", labels={"rack": "a"}),),
        provisioners=(make.provisioner(also=make.needs("team", "Exists")),),
    )
    assert [*unknown_topology_keys(seen)] == []
    assert [*unknown_topology_keys(make.snapshot(make.pod()))] == []
