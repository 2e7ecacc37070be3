"""`dovetail migrate`: shown by default, done with --apply, and told step by step."""

import json
from typing import Any

import pytest

from functions.cli.migrate.migrate_command import mount_migrate
from functions.cli.migrate.migration import Migration
from shared.model.errors import ConflictError, NotInstalledError
from shared.ports import NodeChange
from tests.unit.cli.migrate.changing_hands import ChangingHands
from tests.unit.cli.running import run_mounted
from tests.unit.worlds import NAME, failing, instead


class Runtime:
    """What the command works with."""

    def __init__(self, found: ChangingHands, *names: str) -> None:
        self.found = found
        self.names = names or (NAME,)
        self.applied: list[bool] = []

    def clusters(self) -> tuple[str, ...]:
        return self.names

    def migration(self, cluster: str, *, apply: bool) -> Migration:
        self.applied.append(apply)
        return self.found.migration()


def run(runtime: Runtime, *words: str) -> int:
    made: Any = lambda: runtime  # noqa: E731 -- a double of another type
    return run_mounted(lambda commands: mount_migrate(commands, made), "migrate", *words)


def test_the_command_shows_by_default_and_changes_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = ChangingHands(nodes=2)
    found.karpenter.reasons = ("Deployment karpenter/karpenter has 1 replicas: scale it",)
    assert run(Runtime(found)) == 0
    assert capsys.readouterr().out == (
        "test: take over 2 nodes, $0.1920/h; nothing is changed without --apply\n"
        "NodePool general: 2 nodes, $0.1920/h\n"
        "  n1  i-n1  m5.large  us-east-1a  on-demand  $0.0960/h  take over\n"
        "  n2  i-n2  m5.large  us-east-1a  on-demand  $0.0960/h  take over\n"
        "before --apply: Deployment karpenter/karpenter has 1 replicas: scale it\n"
    )
    assert found.writes == []


def test_the_command_takes_over_what_it_can_and_says_each_step(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = ChangingHands(nodes=2)
    found.world.kubelet_joins("n2", ready=False)
    assert run(Runtime(found), "--apply") == 1
    told = capsys.readouterr()
    assert "refused: the Node is not Ready" in told.out
    assert told.err.splitlines()[0] == "1/1 n1: NodeClaim kept in an annotation of the Node"
    assert told.err.splitlines()[-1] == "1 of 1 nodes have changed hands"
    assert found.is_dovetails("n1")
    assert run(Runtime(found), "--apply", "--node", "n1") == 0
    assert "done" in capsys.readouterr().out


def test_the_command_hands_back_the_nodes_of_a_pool(capsys: pytest.CaptureFixture[str]) -> None:
    found = ChangingHands(nodes=2)
    assert run(Runtime(found), "--apply") == 0
    assert run(Runtime(found), "--apply", "--back", "--node-pool", "general") == 0
    assert found.is_karpenters("n1")
    assert found.is_karpenters("n2")
    capsys.readouterr()
    assert run(Runtime(found), "--back", "--output", "json") == 0
    assert json.loads(capsys.readouterr().out)["rows"] == []


def test_the_command_stops_at_once_when_karpenter_runs(capsys: pytest.CaptureFixture[str]) -> None:
    found = ChangingHands(nodes=2)
    found.karpenter.reasons = ("it runs",)
    assert run(Runtime(found), "--apply", "--output", "json") == 1
    told = capsys.readouterr()
    assert told.err.splitlines() == [
        "1/2 n1: not done: it runs",
        "0 of 2 nodes have changed hands",
    ]
    assert [row["done"] for row in json.loads(told.out)["rows"]] == [False, False]


def test_the_command_goes_on_after_a_node_that_does_not_change_hands(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = ChangingHands(nodes=2)
    original = found.world.cluster.change_node

    def stubborn(known: Any, wanted: NodeChange) -> Any:
        if known.name == "n1":
            raise ConflictError("others write all the time")
        return original(known, wanted)

    instead(found.world.cluster, "change_node", stubborn)
    assert run(Runtime(found), "--apply") == 1
    assert "node n1: after 20 tries not NodeClaim kept" in capsys.readouterr().err
    assert found.is_dovetails("n2")


def test_bad_input_is_told_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    found = ChangingHands()
    assert run(Runtime(found, "prod", "staging")) == 2
    assert run(Runtime(found), "--node", "n7") == 2
    instead(found.karpenter, "node_claims", failing(NotInstalledError("no NodeClaims here")))
    assert run(Runtime(found)) == 2
    assert capsys.readouterr().err.splitlines() == [
        "dovetail migrate: attached clusters: prod, staging; name one with --cluster",
        "dovetail migrate: --node n7: no such node to take over",
        "dovetail migrate: no NodeClaims here",
    ]
