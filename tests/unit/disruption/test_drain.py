"""In which order pods leave."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.disruption.drain import STUCK_AFTER, DrainStep, drain_step, grace_left, is_drainable
from shared.model import labels as keys
from shared.model.kubernetes.pods import ControllerRef, Pod
from shared.model.kubernetes.taints import Effect, Toleration
from tests.builders import NOW, pod

HELD = {keys.DO_NOT_EVICT: "true"}


def on_node(name: str = "a", **changes: Any) -> Pod:
    return pod(name, node_name="n1", **changes)


def step(*pods: Pod, voluntary: bool = True, deadline: timedelta | None = None) -> DrainStep:
    until = None if deadline is None else NOW + deadline
    return drain_step(pods, NOW, voluntary=voluntary, deadline=until)


@pytest.mark.parametrize(
    "changes",
    [
        {"owner": ControllerRef(kind="DaemonSet", name="d", uid="d")},
        {"owner": ControllerRef(kind="Node", name="n", uid="n")},
        {"phase": "Succeeded"},
        {"tolerations": (Toleration(operator="Exists"),)},
        {"tolerations": (Toleration(key=keys.UNSCHEDULABLE_TAINT, operator="Exists"),)},
        {"deletion_at": NOW - STUCK_AFTER},
    ],
)
def test_a_drain_does_not_wait_for_pods_that_stay_or_are_stuck(changes: dict[str, Any]) -> None:
    one = on_node(**changes)
    assert not is_drainable(one, NOW)
    assert step(one) == DrainStep(drained=True)


def test_a_pod_is_waited_for_until_a_minute_past_its_end() -> None:
    leaving = on_node(deletion_at=NOW - STUCK_AFTER + timedelta(seconds=1))
    assert step(leaving) == DrainStep(waiting=(leaving,))


def test_critical_pods_leave_together() -> None:
    first = on_node("a", priority_class="system-node-critical", deletion_at=NOW)
    second = on_node("b", priority_class="system-cluster-critical")
    assert step(first, second) == DrainStep(evict=(second,), waiting=(first,))


def test_do_not_evict_holds_a_removal_we_chose_and_no_other() -> None:
    held, other = on_node("a", annotations=HELD), on_node("b")
    assert step(held, other) == DrainStep(blocked_by=(held,))
    assert step(held, other, voluntary=False) == DrainStep(evict=(held, other))
    assert step(on_node("a", annotations={keys.DO_NOT_EVICT: "false"})).evict


def test_a_held_pod_that_is_leaving_holds_nothing() -> None:
    held = on_node("a", annotations=HELD, deletion_at=NOW)
    other = on_node("b")
    assert step(held, other) == DrainStep(evict=(other,), waiting=(held,))


def test_past_the_deadline_pods_are_deleted_held_or_not() -> None:
    held, leaving = on_node("a", annotations=HELD), on_node("b", deletion_at=NOW)
    assert step(held, leaving, deadline=timedelta(0)) == DrainStep(
        delete=(held,), waiting=(leaving,)
    )
    assert step(held, deadline=timedelta(seconds=1)) == DrainStep(blocked_by=(held,))


on_nodes = st.lists(
    st.tuples(
        st.sampled_from(("", "system-node-critical")),
        st.sampled_from((None, NOW, NOW - STUCK_AFTER)),
        st.sampled_from(({}, HELD)),
        st.sampled_from((None, ControllerRef(kind="DaemonSet", name="d", uid="d"))),
        st.sampled_from(((), (Toleration(key="x", effect=Effect.NO_EXECUTE),))),
    ),
    max_size=5,
)


@given(rows=on_nodes, voluntary=st.booleans(), deadline=st.sampled_from((None, timedelta(0))))
def test_a_step_asks_each_pod_once_and_does_not_depend_on_their_order(
    *, rows: list[tuple[Any, ...]], voluntary: bool, deadline: timedelta | None
) -> None:
    pods = [
        on_node(
            f"p{n}",
            priority_class=row[0],
            deletion_at=row[1],
            annotations=row[2],
            owner=row[3],
            tolerations=row[4],
        )
        for n, row in enumerate(rows)
    ]
    found = step(*pods, voluntary=voluntary, deadline=deadline)
    assert found == step(*reversed(pods), voluntary=voluntary, deadline=deadline)
    asked = [*found.evict, *found.delete, *found.waiting, *found.blocked_by]
    assert len({other_pod.key for other_pod in asked}) == len(asked)
    assert all(is_drainable(other_pod, NOW) for other_pod in asked)
    assert found.drained == (not any(is_drainable(other_pod, NOW) for other_pod in pods))
    assert found.drained or asked
    if voluntary and deadline is None:
        assert not any(other_pod.annotations for other_pod in found.evict)


KEPT = {keys.DO_NOT_DISRUPT: "true"}


def until(ends_in: int, *pods: Pod, **more: Any) -> DrainStep:
    ends_at = NOW + timedelta(seconds=ends_in)
    return drain_step(pods, NOW, voluntary=True, deadline=None, ends_at=ends_at, **more)


@pytest.mark.parametrize("voluntary", [True, False])
def test_a_pod_that_is_not_to_be_disrupted_stays_and_the_others_leave(*, voluntary: bool) -> None:
    kept, other = on_node("a", annotations=KEPT), on_node("b")
    critical = on_node("c", priority_class="system-cluster-critical")
    assert step(kept, other, critical, voluntary=voluntary) == DrainStep(
        evict=(other,), blocked_by=(kept,)
    )
    assert step(kept, critical, voluntary=voluntary) == DrainStep(blocked_by=(kept,))


def test_a_span_keeps_a_pod_from_its_start_until_it_has_passed() -> None:
    hour = timedelta(hours=1)
    for started, held in ((None, True), (NOW - hour / 2, True), (NOW - hour, False)):
        one = on_node(kept_for=hour, started_at=started)
        assert bool(step(one).blocked_by) is held


def test_a_pod_is_deleted_so_early_that_it_has_its_own_grace_period() -> None:
    long = on_node("a", grace_period_seconds=600, annotations=KEPT)
    short, usual = on_node("b", grace_period_seconds=5), on_node("c")
    assert until(601, long, short, usual) == DrainStep(evict=(short, usual), blocked_by=(long,))
    assert until(600, long, short, usual) == DrainStep(delete=(long,), evict=(short, usual))
    assert until(30, short, usual) == DrainStep(delete=(usual,), evict=(short,))


def test_what_forbids_a_voluntary_drain_does_not_forbid_its_end() -> None:
    held, other = on_node("a", annotations=HELD, grace_period_seconds=60), on_node("b")
    assert until(61, held, other) == DrainStep(blocked_by=(held,))
    assert until(60, held, other) == DrainStep(delete=(held,), evict=(other,))


def test_a_pod_that_takes_longer_to_end_than_its_node_is_deleted_again() -> None:
    leaving = on_node(deletion_at=NOW + timedelta(seconds=90))
    assert until(60, leaving) == DrainStep(delete=(leaving,), waiting=(leaving,))
    assert until(90, leaving) == DrainStep(waiting=(leaving,))
    ending = on_node(deletion_at=NOW + timedelta(seconds=1))
    assert until(-5, ending) == DrainStep(waiting=(ending,))


def test_the_grace_that_is_left_is_the_pods_own_at_most_and_one_second_at_least() -> None:
    one = on_node(grace_period_seconds=20)
    left = [grace_left(one, NOW + timedelta(seconds=ends_in), NOW) for ends_in in (30, 10, -5)]
    assert left == [20, 10, 1]
