"""What functions count: per cluster, on a line of its own, and nothing that is zero."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from functions.registration.handler import handler as registration
from functions.replacement.handler import handler as replacement
from functions.termination.handler import handler as termination
from shared.provisioning.report import ProvisionReport
from shared.runtime.logs_and_metrics import emit_metrics
from shared.runtime.reports import report_provision
from tests.functions.conftest import Context

Use = Callable[[str, Any], None]
pytestmark = pytest.mark.filterwarnings("ignore:No application metrics to publish")


class Steps:
    """A runtime whose service answers every step with one state."""

    def __init__(self, **state: Any) -> None:
        self._state = {"cluster": "test", "node": "n1", **state}

    def service(self, cluster: str) -> "Steps":
        return self

    def step(self, state: dict[str, Any]) -> dict[str, Any]:
        return self._state


def told(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines() if '"_aws"' in line]


def test_metrics_of_a_cluster_carry_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    emit_metrics("prod", {"Launches": 2, "PlanGap": 0.0, "Throttles": 0})

    (line,) = told(capsys.readouterr().out)
    (directive,) = line["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == "Dovetail"
    assert "Cluster" in directive["Dimensions"][0]
    assert (line["Cluster"], line["Launches"], line["PlanGap"]) == ("prod", [2], [0])
    assert "Throttles" not in line


def test_nothing_to_count_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    emit_metrics("prod", {"Launches": 0})
    report_provision("prod", ProvisionReport(), lane="queue")

    assert told(capsys.readouterr().out) == []


def test_brakes_count_with_whatever_they_hold_back(capsys: pytest.CaptureFixture[str]) -> None:
    report = ProvisionReport(held_back="a second autoscaler", nodes_over_ceiling=2, pods_runaway=1)
    report_provision("prod", report, lane="queue")

    (line,) = told(capsys.readouterr().out)
    assert line["BrakesApplied"] == [4]


@pytest.mark.parametrize(
    ("state", "expected"),
    [({"blocked": 2}, "DrainsBlocked"), ({"result": "terminated"}, "NodesReleased")],
)
def test_a_drain_that_is_held_and_a_node_that_is_gone_are_counted(
    use: Use, capsys: pytest.CaptureFixture[str], state: dict[str, Any], expected: str
) -> None:
    use("termination", Steps(**state))
    termination({"cluster": "test"}, Context())

    assert [line[expected] for line in told(capsys.readouterr().out)] == [[1]]


def test_what_a_released_node_cost_is_reported(
    use: Use, capsys: pytest.CaptureFixture[str]
) -> None:
    use("termination", Steps(result="terminated", released_micros_per_hour=96_000))
    termination({"cluster": "test"}, Context())

    (line,) = told(capsys.readouterr().out)
    assert line["DollarsPerHourReleased"] == [0.096]


def test_a_machine_that_never_joined_is_counted(
    use: Use, capsys: pytest.CaptureFixture[str]
) -> None:
    use("registration", Steps(result="never joined"))
    registration({"cluster": "test"}, Context())

    assert [line["NodesNeverJoined"] for line in told(capsys.readouterr().out)] == [[1]]


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"result": "never joined", "image_stopped": True}, [[1]]),
        ({"result": "never joined"}, []),
        # Its node still has to go: the state comes again.
        ({"next": "wait", "image_stopped": True}, []),
    ],
)
def test_an_image_whose_first_machine_did_not_join_is_counted_once(
    use: Use,
    capsys: pytest.CaptureFixture[str],
    state: dict[str, Any],
    expected: list[list[int]],
) -> None:
    use("registration", Steps(**state))
    registration({"cluster": "test"}, Context())

    lines = told(capsys.readouterr().out)
    assert [line["ImagesStopped"] for line in lines if "ImagesStopped" in line] == expected


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("replaced", {"NodesReplaced": [2]}),
        ("pods hold it", {"ReplacementsGivenUp": [1]}),
        ("continued in another execution", {}),
    ],
)
def test_replaced_nodes_and_abandoned_replacements_are_counted(
    use: Use, capsys: pytest.CaptureFixture[str], result: str, expected: dict[str, Any]
) -> None:
    use("replacement", Steps(result=result, next="done", remove=[["a", "1"], ["b", "2"]]))
    replacement({"cluster": "test"}, Context())

    names = ("NodesReplaced", "ReplacementsGivenUp")
    found = {
        k: v for entry in told(capsys.readouterr().out) for k, v in entry.items() if k in names
    }
    assert found == expected
