"""Disruption budgets of NodePools and Provisioners, and their schedules."""

import json
from datetime import timedelta
from typing import Any

import pytest

from shared.manifests.custom_resources.node_budgets import read_budgets, unreadable_budgets
from shared.manifests.custom_resources.provisioners import decode_provisioner
from shared.manifests.custom_resources.schedules import read_schedule
from shared.model.node_budgets import DisruptionReason, NodeBudget
from tests.unit.manifests.documents import one_problem, provisioner

KEY = "dovetail.dev/disruption-budgets"
FIELD = f"metadata.annotations.{KEY}"


def annotated(value: object) -> dict[str, Any]:
    raw = provisioner()
    raw["metadata"]["annotations"] = {KEY: value if isinstance(value, str) else json.dumps(value)}
    return raw


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("@daily", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("0 9 * * mon-FRI", "0 9 * * 1-5"),
        ("*/15 ? 1,15 jan,dec sun", "0-59/15 * 1,15 1,12 0"),
        ("5/20 8-8/2 */1 * 1/2", "5-59/20 8 * * 1-6/2"),
    ],
)
def test_a_schedule_means_the_same_to_debians_cron(written: str, meant: str) -> None:
    assert read_schedule(written) == meant


@pytest.mark.parametrize(
    "written",
    [
        "0 9 * * 7",
        "TZ=Europe/Berlin 0 9 * * 1",
        "60 * * * *",
        "0 9 0 * *",
        "0 17-9 * * *",
        "*/0 * * * *",
        "*-5 * * * *",
        "0 9 * * 5L",
        "0 9 * *",
        "0 9 * mon *",
        "@never",
    ],
)
def test_what_karpenter_cannot_read_is_no_schedule(written: str) -> None:
    with pytest.raises(ValueError, match=r"no|range|literal"):
        read_schedule(written)


def test_a_budget_has_a_number_or_a_share_a_time_and_reasons() -> None:
    raw = {"nodes": "3", "schedule": "@hourly", "duration": "1h30m", "reasons": ["Empty", "Else"]}
    assert read_budgets([raw, {"nodes": "20%"}, {"nodes": 4}], None) == (
        NodeBudget(
            nodes=3,
            schedule="0 * * * *",
            duration=timedelta(minutes=90),
            reasons=(DisruptionReason.EMPTY,),
        ),
        NodeBudget(percent=20),
        NodeBudget(nodes=4),
    )
    assert read_budgets(None, None) is None


@pytest.mark.parametrize(
    ("listed", "words"),
    [
        ("10%", "budgets: '10%': all disruption of its nodes is blocked"),
        ([{"nodes": "-1"}], "nodes: '-1': all disruption of its nodes is blocked"),
        ([{"schedule": "0 9 * * 7", "duration": "8h"}], "schedule: '0 9 * * 7'"),
        ([{"duration": "8h"}], "schedule: None"),
        ([{"schedule": "@daily"}], "duration: None"),
        ([{"schedule": "@daily", "duration": "Never"}], "duration: 'Never'"),
    ],
)
def test_what_cannot_be_read_is_a_fault_of_its_budget(listed: object, words: str) -> None:
    (said,) = unreadable_budgets(read_budgets(listed, None) or (), "at")
    assert said.startswith(f"at[0].{words}")


def test_a_provisioner_has_its_budgets_in_an_annotation() -> None:
    assert decode_provisioner(provisioner()).budgets is None
    found = decode_provisioner(
        annotated([{"nodes": "0", "schedule": "1", "duration": "1h"}, {}][1:])
    )
    assert found.budgets == (NodeBudget(percent=10),)
    wrong = annotated([{"nodes": "1", "schedule": "0 9 * * 7", "duration": "1h"}])
    (warning,) = decode_provisioner(wrong).warnings
    assert warning.startswith(f"{FIELD}[0].schedule: '0 9 * * 7': all disruption")


@pytest.mark.parametrize("value", ["", "{}", "[" * 100_000, [{}] * 51])
def test_an_annotation_that_is_no_list_of_budgets_is_refused(value: object) -> None:
    one_problem(annotated(value), FIELD, "write a JSON list of at most 50 budgets")


def test_each_budget_of_an_annotation_is_checked_as_one_of_a_node_pool() -> None:
    one_problem(annotated([{}, {"nodes": 3}]), f"{FIELD}[1].nodes", "write a string")
    one_problem(annotated([{"schedule": "@daily"}]), f"{FIELD}[0].schedule", "write duration, too")
