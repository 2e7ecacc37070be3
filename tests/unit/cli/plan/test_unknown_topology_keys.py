"""Topology keys in pods that no node has."""

from functions.cli.plan.unknown_topology_keys import unknown_topology_keys
from shared.model import labels as keys
from tests import builders as make


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
