"""In shadow mode beside Karpenter's nodes: nothing of Karpenter's objects is written."""

from datetime import timedelta

import pytest

from functions.cli.migrate.handover import Direction
from shared.model import labels as keys
from shared.model.brakes import Brakes
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from shared.ports import Rival, RivalKind
from shared.provisioning.shadow_purchases import record_shadow_purchases
from shared.snapshot.gather import gather
from tests.builders import pod
from tests.unit.cli.migrate.changing_hands import POOL, ChangingHands

LEADER = Rival(kind=RivalKind.KARPENTER, where="kube-system/karpenter-leader-election")


class Leading:
    """A Karpenter whose leader renews its lease."""

    def running(self) -> tuple[Rival, ...]:
        return (LEADER,)


def beside(*, leads: bool) -> ChangingHands:
    """Karpenter's nodes, a pod on one of them, and one that waits for capacity."""
    found = ChangingHands(nodes=2)
    world = found.world
    world.cluster.add(pod("running", node_name="n1"), pod("waiting", cpu=1500))
    world.ports = replace(world.ports, brakes=Brakes(shadow=True))
    if leads:
        world.ports = replace(world.ports, rivals=Leading())
    return found


@pytest.mark.parametrize("leads", [False, True])
def test_shadow_mode_writes_events_and_nothing_else(*, leads: bool) -> None:
    found = beside(leads=leads)
    world, before = found.world, dict(found.world.cluster.node_values)
    world.provision(look=True)
    world.provisioning().report_provisioners()
    world.sweep()
    assert {call.method for call in world.cluster.calls} <= {"happened"}
    assert world.cluster.node_values == before
    assert world.cluster.class_statuses == {}
    assert found.ended == []
    assert not world.outbox.timers
    assert keys.TAG_CLUSTER not in found.tags_of("n1")


def test_what_would_be_bought_beside_karpenter_is_told_in_dollars() -> None:
    found = beside(leads=True)
    found.world.cluster.add(pod("large", cpu=1800))
    found.world.provision()
    (told,) = found.world.messages("ShadowPlan", "NodePool")
    assert "would buy 1 node for 1 pod at $" in told


def bought_lately(*names: str) -> ChangingHands:
    """Nodes that Karpenter bought a minute ago, each with a pod, in shadow mode beside it."""
    found = ChangingHands(nodes=0)
    world = found.world
    world.ports = replace(world.ports, brakes=Brakes(shadow=True), rivals=Leading())
    for name in names:
        found.add_node(name)
        raw = world.cluster.node(name)
        assert raw is not None
        now = world.clock.now()
        world.cluster.add(
            replace(raw, created_at=now, ready_changed_at=now),
            pod(f"of-{name}", cpu=500, node_name=name),
        )
    return found


def test_each_purchase_of_karpenter_is_told_once_beside_dovetails() -> None:
    found = bought_lately("n1", "n2")
    world = found.world
    world.sweep()
    assert not world.outbox.evaluations
    world.advance(timedelta(minutes=1))
    world.sweep()
    assert world.outbox.evaluations
    before = dict(world.cluster.node_values)
    report = world.provision(look=True)
    (told,) = world.messages("ShadowPurchase", "NodePool")
    assert report.shadow_purchases == (told,)
    assert "Karpenter bought 2 nodes for 2 pods at $0.1920/h" in told
    assert "Dovetail would have bought 1 node at $0.0320/h (1 × m5.large spot)" in told
    assert world.provision(look=True).shadow_purchases == ()
    assert len(world.messages("ShadowPurchase")) == 1
    assert {call.method for call in world.cluster.calls} <= {"happened"}
    assert world.cluster.node_values == before
    tally = found.migration().survey(Direction.TAKE_OVER).tally
    assert tally is not None
    assert "$0.1920/h in 1 purchase for 2 pods; Dovetail would have spent $0.0320/h" in (tally.text)


def test_a_purchase_for_a_node_pool_that_cannot_be_used_is_told_on_its_node() -> None:
    found = bought_lately("n1")
    world = found.world
    world.cluster.apply({**POOL, "spec": {**POOL["spec"], "replicas": 2}})
    world.advance(timedelta(minutes=1))
    world.provision(look=True)
    assert "has no node for 1 pod" in world.messages("ShadowPurchase", "Node")[0]


def test_no_purchase_is_begun_with_when_time_is_up() -> None:
    found = bought_lately("n1")
    world = found.world
    world.advance(timedelta(minutes=1))
    snapshot = gather(world.ports, "plan", read_all=True).snapshot
    settings, now = PackingSettings(), snapshot.taken_at
    assert record_shadow_purchases(world.ports, settings, snapshot, now) == ()
