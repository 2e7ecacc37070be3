"""Laws of even placement, classes and demands."""

from hypothesis import example, given
from hypothesis import strategies as st

from shared.model.pods import Pod
from shared.model.requirements import Requirements
from shared.model.resources import Resources
from shared.scheduling.classes import group
from shared.scheduling.demands import demands
from shared.scheduling.offers import in_order, offers
from shared.scheduling.topology import host_rules, slots_left, slots_taken, water_fill
from tests import builders as make
from tests.property.strategies import pending_pods

counts = st.dictionaries(st.sampled_from("abcde"), st.integers(0, 9), max_size=5)


@given(counts, st.integers(0, 40))
@example({"a": 3, "b": 0, "c": 1}, 4)
def test_water_fills_the_lowest_domains_first_and_evenly(have: dict[str, int], pods: int) -> None:
    given_out = water_fill(have, pods)
    assert set(given_out) == set(have)
    assert sum(given_out.values()) == (pods if have else 0)
    total = {domain: have[domain] + given_out[domain] for domain in have}
    for domain, more in given_out.items():
        assert more >= 0
        if more:
            # Whoever got one stands at most one above the lowest: no move would be fairer.
            assert total[domain] - 1 <= min(total.values())


@given(counts, st.integers(0, 20))
def test_one_pod_more_changes_one_domain_by_one(have: dict[str, int], pods: int) -> None:
    before, after = water_fill(have, pods), water_fill(have, pods + 1)
    grown = {domain: after[domain] - before[domain] for domain in have}
    assert sum(abs(one) for one in grown.values()) <= (3 if have else 0)
    assert sum(grown.values()) == (1 if have else 0)


@given(pending_pods())
def test_classes_hold_each_pod_once_whatever_the_order(pods: tuple[Pod, ...]) -> None:
    classes = group(pods)
    assert sorted(ref.uid for one in classes for ref in one.pods) == sorted(p.uid for p in pods)
    assert group(tuple(reversed(pods))) == classes
    by_uid = {one.uid: one for one in pods}
    for one in classes:
        assert {by_uid[ref.uid].scheduling for ref in one.pods} == {one.scheduling}
    ranks = [one.scheduling.priority for one in classes]
    assert ranks == sorted(ranks, reverse=True)


@given(pods=pending_pods(), soft=st.booleans(), reachable=st.booleans())
def test_demands_neither_lose_nor_double_pods(
    *, pods: tuple[Pod, ...], soft: bool, reachable: bool
) -> None:
    classes = group(pods)
    rules = host_rules(classes)
    found = tuple(
        offer
        for one in in_order((make.provisioner(),))
        for offer in offers(one, make.site(zones=make.ZONES if reachable else ()), make.CATALOG, ())
    )
    asked, refused = demands(classes, found, (), rules, soft=soft)
    for index, one in enumerate(classes):
        shares = [demand for demand in asked if demand.class_index == index]
        left = sum(one.count for one in refused if one.class_index == index)
        assert sum(demand.count for demand in shares) + left == len(one.pods)
        assert all(demand.count > 0 for demand in shares)
        assert len({demand.pinned for demand in shares}) == len(shares)
        slots = slots_taken(rules, one, soft=soft)
        assert all(demand.requests == one.scheduling.requests + slots for demand in shares)
        if len(shares) > 1:
            assert all(demand.pinned != Requirements() for demand in shares)


@given(pending_pods())
def test_a_pod_that_stands_takes_the_slots_it_would_take(pods: tuple[Pod, ...]) -> None:
    """Counting a pod on a node and planning it onto one agree, rule by rule."""
    for pod in pods:
        classes = group(pods)
        rules = host_rules(classes)
        empty = slots_left(rules, ())
        for one in classes:
            if make.ref(pod) in one.pods:
                assert empty - slots_left(rules, (pod,)) == slots_taken(rules, one, soft=True)
    assert slots_left((), pods) == Resources()
