"""Which nodes `dovetail top` shows, and in which order."""

from typing import Any

import pytest

from functions.cli.watch.top_options import ORDERS, Order, TopOptions, node_selector
from functions.cli.watch.view import view_node
from shared.model import labels as keys
from shared.model.codec import to_plain
from tests.builders import NOW, node, pod

TEAM = "example.com/team"
LABELS = {"a": {TEAM: "ops"}, "b": {TEAM: "data"}}


def viewed(name: str, price: int | None, running: int, **changes: Any) -> Any:
    pods = [pod(f"{name}{number}", node_name=name) for number in range(running)]
    view = view_node(node(name, **changes), pods, None, [], price)
    return to_plain(view)


JOINED = {**node().labels, keys.INITIALIZED: "true"}
NODES = (
    viewed("b", None, 2, labels=JOINED, created_at=NOW),
    viewed("a", 5, 1, ready=None, created_at=NOW.replace(year=2030)),
    viewed("c", 9, 0, labels=JOINED, created_at=None),
)


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("state", "abc"),
        ("creation", "cba"),
        ("creation=dsc", "abc"),
        ("name", "abc"),
        ("name=dsc", "cba"),
        ("cpu", "bac"),
        ("memory=asc", "cab"),
        ("price", "cab"),
        ("price=asc", "bac"),
        (TEAM, "cba"),
        (f"{TEAM}=dsc", "abc"),
    ],
)
def test_nodes_are_sorted_as_the_option_says(written: str, names: str) -> None:
    ordered = Order.parse(written).sort(NODES, LABELS)
    assert "".join(node["name"] for node in ordered) == names


def test_a_node_of_unknown_size_is_sorted_as_empty() -> None:
    unknown = {**NODES[0], "name": "0", "cpu": 0}
    ordered = Order.parse("cpu=asc").sort((*NODES, unknown), {})
    assert [node["name"] for node in ordered][:2] == ["0", "c"]


@pytest.mark.parametrize("text", ["", "=dsc", "price=down", "price=dsc=asc"])
def test_an_order_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="give state, creation, name, cpu, memory, price or a"):
        Order.parse(text)


def test_keys_change_the_order_and_scroll() -> None:
    options = TopOptions(first=3)
    sorted_by = [options.order.by]
    for _ in ORDERS:
        options = options.after("s", 10)
        sorted_by.append(options.order.by)
    assert sorted_by == [*ORDERS, ORDERS[0]]
    assert TopOptions(order=Order(TEAM)).after("s", 10).order == Order(ORDERS[0])
    assert options.first == 0
    assert options.after("r", 10).order == Order("state", descending=True)
    assert "state ↓" in options.after("r", 10).keys
    for key, first in (
        *(("down", 1), ("up", 0), ("up", 0), ("j", 1), ("k", 0), ("page down", 10)),
        *((" ", 20), ("page up", 10), ("x", 10), ("", 10)),
    ):
        options = options.after(key, 10)
        assert (key, options.first) == (key, first)


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("team=data", "b"),
        ("team==data", "b"),
        ("team!=data", "acd"),
        ("team", "abc"),
        ("!team", "d"),
        ("team in (data, ops)", "ab"),
        ("team notin (data,ops)", "cd"),
        ("team=, example.com/tier = gold", "c"),
        ("team,!example.com/tier,", "ab"),
    ],
)
def test_a_selector_selects_as_kubectl_does(text: str, selected: str) -> None:
    labels: dict[str, dict[str, str]] = {
        "a": {"team": "ops"},
        "b": {"team": "data"},
        "c": {"team": "", "example.com/tier": "gold"},
        "d": {},
    }
    selector = node_selector(text)
    assert "".join(name for name in labels if selector.selects(labels[name])) == selected


@pytest.mark.parametrize("text", ["", "a=b c", "a in x", "=b", "a,,b", "a in (b", "a b"])
def test_a_selector_that_is_none_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="write it as for kubectl get -l, such as"):
        node_selector(text)


def test_a_label_that_nothing_can_have_is_refused() -> None:
    with pytest.raises(ValueError, match="a>1: node-selector: labelSelector: a>1"):
        node_selector("a>1")
