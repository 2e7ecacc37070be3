"""One line for each decision, removal and loss of a node."""

from datetime import timedelta
from typing import Any

import pytest

from functions.cli.watch import watch_command
from functions.cli.watch.board import Board
from functions.cli.watch.lines import HELD, DecisionLines, decision_line, first_line
from functions.cli.watch.view import OfferingPrices
from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from tests.builders import CATALOG, NOW, node

JOINED = {**node().labels, keys.INITIALIZED: "true"}
GOES = {keys.REMOVAL_REASON: "emptiness"}


def whole(*nodes: Node, decisions: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    board = Board(OfferingPrices.of(CATALOG))
    for found in nodes:
        board.put_node(None, found)
    board.next_change()
    return {"synced": True, **board.whole().to_plain(), "decisions": list(decisions)}


def made(plan: str, **more: Any) -> dict[str, Any]:
    return {
        "id": plan,
        "at": "2026-11-24T19:47:49+00:00",
        "cause": "10 pods wait for capacity",
        "cost": 271_000,
        "bound": 270_000,
        "gap_percent": 0.37,
        "bound_is_close": True,
        "pods": 10,
        "remove": [],
        "nodes": [[3, "m5.large", "spot"], [1, "m5.2xlarge", "spot"]],
        "placed": 0,
        "unplaced": 0,
        "outcome": None,
        **more,
    }


def test_decision_is_one_line_with_what_is_planned_dollars_gap_and_cause() -> None:
    assert decision_line(made("a")) == (
        "plans 4 nodes for 10 pods: 3 × m5.large spot, 1 × m5.2xlarge spot; "
        "$0.2710/h, bound $0.2700/h, gap 0.37 %; 10 pods wait for capacity"
    )


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"remove": ["n1", "n2", "n3"]}, "replaces 3 nodes: n1, n2 and 1 more; cheaper"),
        ({"placed": 1}, "places 1 pod on nodes that are there; cheaper"),
        ({"unplaced": 2}, "has no place for 2 pods (`dovetail why POD`); cheaper"),
        ({}, "changes nothing; cheaper"),
    ],
)
def test_decision_without_nodes_says_what_it_does(more: dict[str, Any], line: str) -> None:
    assert decision_line(made("a", nodes=[], cause="cheaper", **more)) == line


def test_decisions_are_reported_once_and_the_oldest_first() -> None:
    lines = DecisionLines()
    first, second = made("a"), made("b", nodes=[], placed=1)
    found = lines.new_lines(whole(decisions=(second, first)), NOW)
    assert [line[:22] for line in found] == ["19:47:49 plans 4 nodes", "19:47:49 places 1 pod "]
    assert lines.new_lines(whole(decisions=(second, first)), NOW) == []


def came(**more: Any) -> dict[str, Any]:
    launched = [[3, "m5.large", "spot"], [1, "m5.2xlarge", "spot"]]
    at = "2026-11-24T19:47:52+00:00"
    return {"at": at, "launched": launched, "cost": 271_000, "refused": [], "ended": True, **more}


MORE = "more than planned: InsufficientInstanceCapacity: no capacity"
SHORT = [["InsufficientInstanceCapacity", "no capacity"], ["Unfulfillable", "x"]]


@pytest.mark.parametrize(
    ("outcome", "line"),
    [
        (came(), "launched 4 nodes: 3 × m5.large spot, 1 × m5.2xlarge spot; $0.2710/h"),
        (
            came(launched=[[4, "m5.large", "on-demand"]], cost=384_000, refused=SHORT),
            f"launched 4 nodes: 4 × m5.large on-demand; $0.3840/h, $0.1130/h {MORE}",
        ),
        (
            came(launched=[[1, "m5.large", "spot"]], cost=30_000),
            "launched 1 node: 1 × m5.large spot; $0.0300/h; 3 not",
        ),
        (
            came(launched=[], cost=0, refused=[["InvalidParameterValue", "no such profile"]]),
            "launched no node of 4: EC2 refused: InvalidParameterValue: no such profile",
        ),
        (
            came(launched=[], cost=0, refused=[["UnauthorizedOperation", "not allowed " * 20]]),
            f"launched no node of 4: EC2 refused: UnauthorizedOperation: {'not allowed ' * 9}not …",
        ),
    ],
)
def test_what_came_of_a_decision_is_reported_once_it_is_over(
    outcome: dict[str, Any], line: str
) -> None:
    lines = DecisionLines()
    under_way = made("a", outcome={**outcome, "ended": False})
    assert len(lines.new_lines(whole(decisions=(under_way,)), NOW)) == 1
    over = whole(decisions=(made("a", outcome=outcome),))
    assert lines.new_lines(over, NOW) == [f"19:47:52 {line} (planned at 19:47:49)"]
    assert lines.new_lines(over, NOW) == []


def in_time(lines: DecisionLines, state: dict[str, Any]) -> list[str]:
    """What is reported of a state once no earlier decision can still be read."""
    return lines.new_lines(state, NOW) + lines.new_lines(state, NOW + HELD)


def test_lines_keep_the_order_of_time_when_a_decision_is_read_after_a_removal() -> None:
    lines = DecisionLines()
    stands, going = node("n1", labels=JOINED), node("n1", labels=JOINED, annotations=GOES)
    seconds = [(NOW + timedelta(seconds=offset)).isoformat() for offset in (-9, -4, 5)]
    first, second, third = (made(plan, at=at) for plan, at in zip("abc", seconds, strict=True))
    assert lines.new_lines(whole(stands), NOW) == []
    assert lines.new_lines(whole(going), NOW) == []
    found = lines.new_lines(whole(going, decisions=(second,)), NOW)
    found += lines.new_lines(whole(going, decisions=(third, second)), NOW)
    found += lines.new_lines(whole(going, decisions=(third, second, first)), NOW)
    assert [line.split(maxsplit=2)[:2] for line in found] == [
        ["23:59:56", "plans"],
        ["00:00:00", "removes"],
        ["00:00:05", "plans"],
        ["00:00:05", "plans"],
    ]
    assert found[-1].endswith("10 pods wait for capacity (at 23:59:51)")


def test_the_first_line_says_what_there_is() -> None:
    state = whole(node("n1", labels=JOINED))
    text = "https://test: 1 node for $0.0960/h, 0 pods"
    assert first_line(state, "https://test").startswith(f"{text}; a line for each decision")
    state["totals"]["waiting"] = 2
    assert first_line(state, "https://test").startswith(f"{text}, 2 pods wait; ")


def test_nodes_that_begin_to_go_are_one_line_for_each_reason() -> None:
    lines = DecisionLines()
    stands = [node(name, labels=JOINED) for name in ("n1", "n2", "n3", "n4")]
    going = [node(name, labels=JOINED, annotations=GOES) for name in ("n1", "n2", "n3")]
    assert lines.new_lines(whole(*stands), NOW) == []
    [line] = in_time(lines, whole(*going, stands[3]))
    assert line == (
        f"{NOW:%H:%M:%S} removes 3 nodes, 3 × m5.large on-demand, $0.2880/h (n1, n2 and 1 more): "
        "emptiness; $0.0960/h stays"
    )
    assert in_time(lines, whole(*going, stands[3])) == []
    assert in_time(lines, whole(stands[3])) == []


def test_node_that_is_gone_without_a_removal_is_lost() -> None:
    lines = DecisionLines()
    lines.new_lines(whole(node("n1", labels=JOINED), node("n2", finalizers=(), labels={})), NOW)
    [line] = in_time(lines, whole())
    assert line.endswith(
        "lost 1 node, 1 × m5.large on-demand, $0.0960/h (n1): the Node is gone; $0.0000/h stays"
    )


def test_nothing_is_reported_of_a_cluster_that_is_not_read_yet() -> None:
    assert (
        DecisionLines().new_lines({**whole(node("n1", annotations=GOES)), "synced": False}, NOW)
        == []
    )


def test_launching_instances_are_no_nodes_that_could_be_lost() -> None:
    lines = DecisionLines()
    state = whole(node("n1", labels=JOINED))
    state["nodes"] = [{**asdict_of(state), "phase": "launching"}]
    assert lines.new_lines(state, NOW) == []
    assert in_time(lines, whole()) == []


def asdict_of(state: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = dict(state["nodes"][0])
    return found


class Turns:
    """A cluster whose second turn is interrupted, as by Ctrl-C."""

    is_synced = True
    server = "https://test"

    def __init__(self, state: dict[str, Any], *, is_current: bool = True) -> None:
        self.is_current = is_current
        self._state = state
        self._turns = 0

    def next_change(self) -> None:
        self._turns += 1
        if self._turns > 1:
            raise KeyboardInterrupt

    def whole(self) -> dict[str, Any]:
        return self._state


def test_what_there_is_is_printed_before_decisions_are_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_command, "_LINES_SECONDS", 0.0)
    turns = Turns(whole(node("n1", labels=JOINED)), is_current=False)
    with pytest.raises(KeyboardInterrupt):
        watch_command._print_lines(turns)  # type: ignore[arg-type]
    assert capsys.readouterr().out == f"{first_line(turns.whole(), 'https://test')}\n"


def test_lines_are_printed_as_they_come_without_commands_for_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(watch_command, "_LINES_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        watch_command._print_lines(Turns(whole(decisions=(made("a", cause="\x1b[2J"),))))  # type: ignore[arg-type]
    assert capsys.readouterr().out.endswith("gap 0.37 %; ?[2J\n")
