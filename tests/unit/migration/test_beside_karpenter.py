"""In shadow mode beside Karpenter's nodes: nothing of Karpenter's objects is written."""

from dataclasses import replace

import pytest

from shared.model import labels as keys
from shared.model.brakes import Brakes
from shared.ports import Rival, RivalKind
from tests.builders import pod
from tests.unit.migration.changing_hands import ChangingHands

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
