"""Ceilings over other Provisioners than those that a decision was recorded for."""

import dataclasses

import pytest

from shared.model.brakes import NO_CEILING, Ceiling
from shared.model.provisioner import Provisioner
from shared.model.resources import NODES, PRICE, Resources
from shared.model.snapshot import ClusterSnapshot
from shared.nodes.brakes.ceilings import under_ceilings, under_recorded_ceilings
from tests.builders import intent, node, pods, provisioner, site, slot, snapshot

NONE = NO_CEILING
FOUR = Ceiling(max_nodes=4, max_price_micros_per_hour=400_000)
TEN = Ceiling(max_nodes=10, max_price_micros_per_hour=1_000_000)
# Less than the three nodes that there are.
ONE = Ceiling(max_nodes=1)


def gathered(*owners: Provisioner) -> ClusterSnapshot:
    """Return a snapshot of the Provisioner `default` with three nodes, one in each state."""
    return snapshot(
        *pods(3),
        provisioners=owners,
        nodes=(node(),),
        slots=(slot(),),
        intents=(intent(reserved_price_micros_per_hour=96_000),),
    )


def with_owners(scene: ClusterSnapshot, *owners: Provisioner) -> ClusterSnapshot:
    sites = tuple(site(owner.name) for owner in owners)
    return dataclasses.replace(scene, provisioners=owners, sites=sites)


@pytest.mark.parametrize("of_cluster", [NONE, FOUR, TEN, ONE])
@pytest.mark.parametrize("own", [NONE, FOUR, TEN, ONE])
def test_the_same_provisioner_again_has_the_same_limits(of_cluster: Ceiling, own: Ceiling) -> None:
    owner = provisioner(ceiling=own, limits=Resources((("cpu", 0),)))
    scene = under_ceilings(gathered(owner), of_cluster)
    assert under_recorded_ceilings(with_owners(scene, owner), scene) == scene


def test_other_provisioners_have_their_own_ceilings_and_what_the_cluster_leaves() -> None:
    scene = under_ceilings(gathered(provisioner()), FOUR)
    others = (provisioner(ceiling=TEN), provisioner("more"), provisioner("small", ceiling=ONE))
    again = under_recorded_ceilings(with_owners(scene, *others), scene)
    assert [dict((owner.limits or Resources()).items) for owner in again.provisioners] == [
        {NODES: 4, PRICE: 400_000},
        {NODES: 1, PRICE: 112_000},
        {NODES: 1, PRICE: 112_000},
    ]


def test_a_ceiling_holds_where_the_recorded_decision_knew_none() -> None:
    owner = provisioner(ceiling=FOUR)
    scene = gathered(provisioner())
    again = under_recorded_ceilings(with_owners(scene, owner), scene)
    assert again == under_ceilings(gathered(owner), NO_CEILING)
