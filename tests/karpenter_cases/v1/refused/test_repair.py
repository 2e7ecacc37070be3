"""Repair of nodes is not offered: doctor names each sick node, and what becomes of it."""

from typing import Any

import pytest

from functions.cli.doctor.doctor import Doctor
from functions.cli.doctor.findings import Finding
from shared.model import labels as keys
from shared.nodes.timers.heartbeats import save_forwarder_heartbeat
from tests.builders import NOW, pod
from tests.karpenter_cases.v1.worlds import named_pool, stand, world
from tests.unit.worlds import MINUTE, NAME, World

REMEDY = "Dovetail repairs no node, and removes it once it is empty"


def sick(names: str = "1", *more: Any, **changes: Any) -> World:
    there = world(named_pool(spec={"terminationGracePeriod": "1h"}))
    there.cluster.add(*more)
    for number in names:
        stand(there, f"n{number}", ready=False, **changes)
    save_forwarder_heartbeat(there.ledger, NAME, NOW + 600 * MINUTE)
    return there


def refused(there: World) -> list[Finding]:
    """Return what doctor says of nodes that are not Ready; nothing is done about them."""
    there.sweep()
    there.provision(look=True)
    every = Doctor(there.ports).findings()
    found = [finding for finding in every if finding.kind == "node-not-ready"]
    assert all(REMEDY in finding.text for finding in found)
    assert all(node.deletion_at is None for node in there.cluster.nodes())
    return found


@pytest.mark.parametrize("ready", [False, None])
def test_a_sick_node_is_told_with_the_command(*, ready: bool | None) -> None:
    there = sick("")
    stand(there, "n1", ready=ready)
    there.advance(31 * MINUTE)
    (found,) = refused(there)
    assert (found.subject, found.command) == ("n1", "kubectl describe node n1")


def test_no_deadline_is_written_on_a_sick_node() -> None:
    there = sick()
    there.advance(31 * MINUTE)
    assert len(refused(there)) == 1
    assert keys.DRAIN_DEADLINE not in there.node.annotations


def test_a_sick_node_with_a_pod_that_must_stay_is_told_alike() -> None:
    held = pod(node_name="n1", annotations={keys.DO_NOT_DISRUPT: "true"})
    there = sick("1", held)
    there.advance(31 * MINUTE)
    assert len(refused(there)) == 1


def test_each_of_many_sick_nodes_is_told() -> None:
    there = sick("123")
    there.advance(31 * MINUTE)
    assert [finding.subject for finding in refused(there)] == ["n1", "n2", "n3"]


def test_a_sick_node_is_told_again_until_it_is_ready() -> None:
    there = sick()
    for _ in range(2):
        there.advance(31 * MINUTE)
        assert len(refused(there)) == 1
    stand(there)
    assert refused(there) == []
