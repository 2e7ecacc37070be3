"""The board: changes together are the whole, in whatever order things were read."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from functions.cli.watch.board import Board, BoardChange, Records
from functions.cli.watch.view import OfferingPrices
from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.values import replace
from tests.builders import CATALOG, node, planned, pod, provisioner, ref, slot

JOINED = {**node().labels, keys.INITIALIZED: "true"}


def board(*read: Node | Pod) -> Board:
    made = Board(OfferingPrices.of(CATALOG))
    made.put_owners([provisioner()])
    for value in read:
        if isinstance(value, Node):
            made.put_node(None, value)
        else:
            made.put_pod(None, value)
    return made


def changed(made: Board) -> BoardChange:
    change = made.next_change()
    assert change is not None
    return change


def reason(change: BoardChange) -> str:
    """Return why the first pods wait."""
    assert change.waiting
    return change.waiting[0].reason


def test_a_change_names_only_what_looks_different() -> None:
    made = board(node("n1", labels=JOINED), node("n2", labels=JOINED))
    first = changed(made)
    assert [view.name for view in first.nodes] == ["n1", "n2"]
    assert made.next_change() is None
    made.put_pod(None, pod("a", node_name="n2"))
    second = changed(made)
    assert [view.name for view in second.nodes] == ["n2"]
    assert (second.gone, second.waiting) == ((), None)
    assert second.totals.pods == 1


def test_a_new_version_of_a_node_that_looks_the_same_is_no_change() -> None:
    made = board(node("n1"))
    made.next_change()
    made.put_node(node("n1"), node("n1", resource_version="2"))
    assert made.next_change() is None


def test_a_node_that_is_gone_is_named_once() -> None:
    made = board(node("n1"))
    made.next_change()
    made.put_node(node("n1"), None)
    change = changed(made)
    assert change.gone == ("n1",)
    assert made.next_change() is None


def test_the_end_of_a_former_node_of_a_name_does_not_take_the_new_one_away() -> None:
    old, new = node("n1"), node("n1", uid="another")
    made = board(old, new)
    made.put_node(old, None)
    assert made.nodes == {"n1": new}


def test_pods_that_have_ended_are_not_counted() -> None:
    running = pod("a", node_name="n1")
    made = board(node("n1"), running)
    made.put_pod(running, replace(running, phase="Succeeded"))
    made.next_change()
    assert made.whole().totals.pods == 0
    assert not made.pods


def test_a_launched_instance_is_shown_until_its_node_is() -> None:
    waiting = pod("a")
    launched = slot(instance_id="i-n1", pods=(ref(waiting),))
    made = board(waiting)
    made.put_records(Records(slots=(launched,)))
    first = changed(made)
    assert [view.name for view in first.nodes] == ["i-n1"]
    assert first.totals.coming == 1
    assert first.totals.nodes == 0
    made.put_node(None, node("n1", ready=None))
    second = changed(made)
    assert ([view.name for view in second.nodes], second.gone) == (["n1"], ("i-n1",))
    assert second.nodes[0].promised[0].count == 1
    assert reason(second) == "nominated to n1, which waits for the kubelet to be Ready"


def test_a_promise_is_kept_when_its_pod_is_bound() -> None:
    waiting = pod("a")
    made = board(node("n1", ready=None), waiting)
    made.put_records(Records(slots=(slot(instance_id="i-n1", pods=(ref(waiting),)),)))
    made.next_change()
    made.put_pod(waiting, replace(waiting, node_name="n1"))
    change = changed(made)
    [view] = change.nodes
    assert (view.promised, view.pods[0].count) == ((), 1)
    assert change.waiting == ()


def test_an_instance_whose_node_is_gone_is_shown_no_more() -> None:
    waiting = pod("a")
    made = board(waiting)
    made.put_records(Records(slots=(slot(node_name="n1", pods=(ref(waiting),)),)))
    change = changed(made)
    assert change.nodes == ()
    assert reason(change).startswith("waits for the next plan")


def test_a_node_that_ec2_was_asked_for_is_shown_with_its_pods() -> None:
    waiting = pod("a")
    made = board(waiting)
    made.put_records(Records(launching={"plan-1/0/0": planned(waiting)}))
    change = changed(made)
    assert reason(change).startswith("nominated to plan-1/0/0, which waits for EC2's")
    made.put_records(Records())
    gone = changed(made)
    assert gone.gone == ("plan-1/0/0",)


def test_what_the_last_decision_and_kube_scheduler_say_are_reasons() -> None:
    made = board()
    made.put_pod(None, pod("a"), "0/1 nodes are available")
    change = changed(made)
    assert reason(change) == "0/1 nodes are available"
    made.put_records(Records(refused={"uid-a": "fits nothing: too large"}))
    again = changed(made)
    assert reason(again) == "fits nothing: too large"


def test_other_prices_and_owners_change_what_is_shown() -> None:
    made = board(node("n1", labels=JOINED))
    made.next_change()
    made.put_prices(OfferingPrices({}))
    change = changed(made)
    assert change.nodes[0].price is None
    assert (change.totals.unpriced, change.totals.price) == (1, 0)
    made.put_prices(OfferingPrices({}))
    made.put_owners([provisioner()])
    assert made.next_change() is None


def test_totals_tell_dovetails_nodes_from_others() -> None:
    goes = node("n2", labels=JOINED, annotations={keys.REMOVAL_REASON: "empty"})
    other = node("n3", finalizers=())
    made = board(node("n1", labels=JOINED), goes, other, pod("a"))
    made.next_change()
    totals = made.whole().totals
    assert (totals.nodes, totals.owned, totals.going, totals.waiting) == (3, 2, 1, 1)
    assert (totals.price, totals.owned_price) == (3 * 96_000, 2 * 96_000)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["node", "node gone", "pod", "bind", "pod gone", "records"]),
        st.integers(0, 3),
    ),
    max_size=25,
)


@given(STEPS)
def test_changes_together_are_the_whole(steps: list[tuple[str, int]]) -> None:
    """Whatever happens, in whatever order: a page that applies each change sees the whole."""
    made = board()
    nodes: dict[int, Node] = {}
    pods: dict[int, Pod] = {}
    shown: dict[str, Any] = {}
    waiting: Any = ()
    for verb, number in steps:
        match verb:
            case "node":
                new = node(f"n{number}", ready=True if number % 2 else None)
                made.put_node(nodes.get(number), new)
                nodes[number] = new
            case "node gone" if number in nodes:
                made.put_node(nodes.pop(number), None)
            case "pod" if number not in pods:
                pods[number] = pod(f"p{number}")
                made.put_pod(None, pods[number])
            case "bind" if number in pods:
                bound = replace(pods[number], node_name=f"n{(number + 1) % 4}")
                made.put_pod(pods[number], bound)
                pods[number] = bound
            case "pod gone" if number in pods:
                made.put_pod(pods.pop(number), None)
            case "records":
                refs = tuple(ref(pods[key]) for key in sorted(pods))
                made.put_records(Records(slots=(slot(instance_id=f"i-n{number}", pods=refs),)))
        change = made.next_change()
        if change is not None:
            shown |= {view.name: view for view in change.nodes}
            shown = {name: view for name, view in shown.items() if name not in change.gone}
            waiting = waiting if change.waiting is None else change.waiting
        whole = made.whole()
        assert shown == {view.name: view for view in whole.nodes}
        assert waiting == whole.waiting
        unbound = [found for found in pods.values() if not found.node_name]
        assert whole.totals.waiting == len(unbound)
        assert sum(group.count for group in whole.waiting or ()) == len(unbound)
