"""`dovetail plan --cost-of-rules`: what each scheduling rule costs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from functions.cli.plan.cost_of_rules import MOST_RULES, costs_of_rules, rules_of
from shared.model.plan import Plan
from tests.unit.cli.running import PROVISIONER, container, deployment, read, run, written

HOSTS = "kubernetes.io/hostname"
Costs = Callable[..., dict[str, Any]]


def labels(name: str) -> dict[str, object]:
    return {"matchLabels": {"app": name}}


def spread(policy: str) -> dict[str, object]:
    constraint = {"maxSkew": 1, "topologyKey": HOSTS, "whenUnsatisfiable": policy}
    return {"topologySpreadConstraints": [{**constraint, "labelSelector": labels("web")}]}


def near(field: str, name: str) -> dict[str, object]:
    term = {"topologyKey": HOSTS, "labelSelector": labels(name)}
    return {"affinity": {field: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


@pytest.fixture
def costs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Costs:
    """Plans six pods of `web` with a rule; returns what the rules cost."""

    def plan(**spec: object) -> dict[str, Any]:
        web = deployment("web", 6, containers=[container("250m")], **spec)
        name = written(tmp_path / "a.yaml", PROVISIONER, web)
        run("plan", "-f", name, "--cost-of-rules", "--output", "json")
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    return plan


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        (near("podAntiAffinity", "web"), f"anti-affinity over {HOSTS}"),
        (
            {"nodeSelector": {"node.kubernetes.io/instance-type": "m5.24xlarge"}},
            "node selector and node affinity",
        ),
        (spread("ScheduleAnyway"), "preferences"),
        (spread("DoNotSchedule"), f"topology spread over {HOSTS}"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_rule_costs_what_the_plan_without_it_saves(
    rule: dict[str, object], name: str, costs: Costs
) -> None:
    plain = costs()["today"]
    found = costs(**rule)
    (one,) = found["rules"]
    assert (one["workload"], one["rule"]) == ("default/web", name)
    assert one["without"] == plain
    today = found["today"]["cost_micros_per_hour"]
    assert one["cost_micros_per_hour"] == today - plain["cost_micros_per_hour"]
    if name != "preferences":
        assert one["cost_micros_per_hour"] > 0


def test_pods_that_are_together_anyway_pay_nothing_for_their_affinity(costs: Costs) -> None:
    (one,) = costs(**near("podAffinity", "web"))["rules"]
    assert (one["rule"], one["cost_micros_per_hour"]) == (f"affinity over {HOSTS}", 0)


def test_the_table_has_the_dear_rules_and_how_many_are_free(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    apart = deployment("web", 4, **near("podAntiAffinity", "web"))
    free = deployment("api", 2, nodeSelector={"kubernetes.io/os": "linux"})
    name = written(tmp_path / "a.yaml", PROVISIONER, apart, free)
    assert run("plan", "-f", name, "--cost-of-rules") == 0
    today, _, head, row, _, rest = capsys.readouterr().out.splitlines()
    assert today.startswith("today: 4 nodes, $")
    assert head.split()[:2] == ["WORKLOAD", "RULE"]
    assert row.startswith(f"default/web  anti-affinity over {HOSTS}  ")
    assert rest == "1 of 2 rules cost nothing"
    assert run("plan", "-f", name, "--cost-of-rules", "--output", "markdown") == 0
    assert "| default/web | anti-affinity over" in capsys.readouterr().out


def test_pods_that_a_rule_leaves_without_a_place_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = {"nodeSelector": {"node.kubernetes.io/instance-type": "m5.none"}}
    name = written(tmp_path / "a.yaml", PROVISIONER, deployment("web", 2, **nowhere))
    assert run("plan", "-f", name, "--cost-of-rules", "--output", "json") == 3
    (one,) = json.loads(capsys.readouterr().out)["rules"]
    assert one["pods_left_out"] == 2
    assert one["cost_micros_per_hour"] < 0
    assert run("plan", "-f", name, "--cost-of-rules") == 3
    assert "2 more pods placed" in capsys.readouterr().out


def test_manifests_without_a_rule_say_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = written(tmp_path / "a.yaml", PROVISIONER, deployment())
    assert run("plan", "-f", name, "--cost-of-rules") == 0
    assert capsys.readouterr().out.splitlines()[-1] == "no pod has a rule"
    assert run("plan", "-f", name, "--cost-of-rules", "--explain", "a/b") == 2
    assert "--explain: is for one plan" in capsys.readouterr().err


def test_no_more_rules_are_tried_than_there_is_time_for() -> None:
    many = [
        deployment(f"w{n:02}", 1 + (n == 7), **near("podAntiAffinity", f"w{n:02}"))
        for n in range(MOST_RULES + 5)
    ]
    snapshot = read(PROVISIONER, *many).snapshot
    rules = rules_of(snapshot)
    assert rules[0].workload == "default/w07"
    plan = Plan()
    assert len(costs_of_rules(snapshot, rules, plan, lambda _: plan)) == MOST_RULES
    left = iter([True, True, False])
    assert len(costs_of_rules(snapshot, rules, plan, lambda _: plan, lambda: next(left))) == 2
