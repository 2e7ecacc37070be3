"""Picks: which values custom labels get, each a full list of what could be bought."""

from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.requirements import Requirements
from shared.planning.offerings.picks import MOST_PICKS, Picks, label_choices, some_value
from shared.planning.rules.provisioner_offerings import provisioner_offerings
from tests import builders as make
from tests.builders import needs, provisioner, site


def picks(*telling: str, **teams: Any) -> Picks:
    team = needs("team", "In", "red", "blue")
    return Picks(provisioner(also=(*team, *needs("tier", "Exists"))), telling, **teams)


def team(name: str, *more: Requirements) -> Requirements:
    wanted = needs("team", "In", name)
    for requirements in more:
        wanted = wanted.merge(requirements)
    return wanted


def test_custom_labels_with_several_values_wait_for_a_pod_that_asks() -> None:
    asked = picks()
    for demand in (
        needs("team", "In", "blue", "green"),
        needs("tier", "In", "9"),
        needs("team", "NotIn", "blue"),
        needs("team", "Exists").merge(needs("tier", "In", "2", "1")),
        needs("team", "In", "pink"),
        needs(keys.ARCH, "In", "amd64"),
    ):
        assert asked.pick_for((demand,))
    assert asked.listed() == (
        {},
        {"team": "blue"},
        {"team": "blue", "tier": "1"},
        {"team": "red"},
        {"tier": "9"},
    )


def test_an_existing_pick_serves_the_pods_it_satisfies() -> None:
    asked = picks()
    asked.pick_for((needs("tier", "In", "9"),))
    asked.pick_for((needs("tier", "Exists"),))
    asked.pick_for((needs("tier", "In", "8", "9"),))
    assert asked.listed() == ({}, {"tier": "9"})
    asked.pick_for((needs("tier", "In", "7", "8"),))
    assert {"tier": "7"} in asked.listed()


def test_of_a_topology_key_each_value_is_picked_with_each_other_pick() -> None:
    both: tuple[dict[str, str], ...] = ({}, {"team": "blue"}, {"team": "red"})
    assert picks().listed(("tier", "team", "other")) == both
    asked = picks()
    asked.pick_for((needs("team", "In", "blue"),))
    assert asked.listed(("team",)) == both


def test_terms_that_differ_in_custom_labels_alone_are_served_by_one_pick() -> None:
    asked = Picks(provisioner(also=needs("team", "Exists")))
    assert asked.pick_for([team(f"t{number}") for number in range(400)])
    assert asked.listed() == ({}, {"team": "t0"})


def test_terms_that_no_pick_serves_leave_the_pick_to_the_others() -> None:
    asked = picks()
    # A label that may be absent on both sides needs no value.
    absent = Picks(
        provisioner(also=(*needs("team", "In", "red", "blue"), *needs("tier", "NotIn", "1")))
    )
    assert asked.pick_for(
        (team("pink", needs("tier", "In", "1")), team("red", needs("tier", "In", "2")))
    )
    assert asked.listed() == ({}, {"team": "red", "tier": "2"})
    assert absent.pick_for((team("blue", needs("tier", "DoesNotExist")),))
    assert absent.listed() == ({}, {"team": "blue"})


def test_terms_that_differ_in_anything_else_get_a_pick_each() -> None:
    zones = [needs(keys.ZONE, "In", zone) for zone in make.ZONES]
    asked = Picks(provisioner(also=needs("team", "Exists")))
    asked.pick_for([team(f"t{number}", zone) for number, zone in enumerate(zones)])
    assert asked.listed() == ({}, {"team": "t0"}, {"team": "t1"}, {"team": "t2"})


def test_values_that_something_else_depends_on_are_picked_each() -> None:
    asked = Picks(provisioner(also=needs("team", "Exists")), ("team",))
    asked.pick_for((team("t0"), team("t1")))
    assert asked.listed() == ({}, {"team": "t0"}, {"team": "t1"})


def test_picks_are_bounded_and_those_of_preferences_more() -> None:
    asked = Picks(provisioner(also=needs("team", "Exists")))
    for number in range(100):
        asked.pick_for_preference(team(f"wish{number}"))
    preference_kinds = len(asked)
    assert 0 < preference_kinds < MOST_PICKS / 2
    served = [asked.pick_for((team(f"t{number}"),)) for number in range(100)]
    assert served == [True] * (MOST_PICKS - preference_kinds) + [False] * (
        100 - MOST_PICKS + preference_kinds
    )
    assert len(asked) == MOST_PICKS
    asked.pick_for_preference(team("late"))
    assert len(asked) == MOST_PICKS


def test_a_provisioner_that_leaves_nothing_open_needs_no_pick() -> None:
    closed = Picks(provisioner())
    assert closed.pick_for((team("red"),))
    assert closed.listed() == ({},)
    assert closed.checks == 0


def test_offers_of_all_picks_share_their_machines() -> None:
    owner = provisioner(also=needs("team", "Exists"))
    chosen = label_choices(owner, (team("red"),))
    every = provisioner_offerings(owner, site(), make.CATALOG, (make.daemonset(),), picks=chosen)
    plain, red = every[: len(every) // 2], every[len(every) // 2 :]
    assert [offer.labels.get("team") for offer in plain] == [None] * len(plain)
    assert {offer.labels["team"] for offer in red} == {"red"}
    assert all(a.instance_type is b.instance_type for a, b in zip(plain, red, strict=True))
    assert all(a.available is b.available for a, b in zip(plain, red, strict=True))


def test_a_daemonset_that_asks_for_a_pick_takes_its_room_there_alone() -> None:
    owner = provisioner(also=needs("team", "Exists"))
    logs = make.daemonset(node_selector=team("red"))
    chosen: tuple[dict[str, str], ...] = ({}, {"team": "blue"}, {"team": "red"})
    found = provisioner_offerings(owner, site(), make.CATALOG, (logs,), picks=chosen)
    with_room = {offer.labels.get("team"): bool(offer.daemon_requests) for offer in found}
    assert with_room == {None: False, "blue": False, "red": True}


@pytest.mark.parametrize(
    ("wanted", "value"),
    [
        (needs("k", "In", "b", "a"), "a"),
        (needs("k", "NotIn", "x"), "xx"),
        (needs("k", "Gt", "7"), "8"),
        (needs("k", "Lt", "-7"), None),
        (needs("k", "Lt", "9"), "0"),
        (needs("k", "Gt", "3").merge(needs("k", "NotIn", "4", "5")), "6"),
        (needs("k", "DoesNotExist"), None),
    ],
)
def test_a_simple_value_is_found_that_a_requirement_allows(
    wanted: Requirements, value: str | None
) -> None:
    (one,) = wanted
    if value is None:
        assert some_value(one) in (None, "-8")
    else:
        assert some_value(one) == value
