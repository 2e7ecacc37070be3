"""Metrics: the table is what the code counts; dashboards and questions show what there is."""

import ast
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from infra.aws.components.queries import QUERIES
from infra.aws.functions import FUNCTIONS
from infra.aws.metrics import METRICS, DashboardGraph
from shared.provisioning.report import ProvisionReport
from shared.provisioning.sweep.sweep import SweepReport
from shared.runtime.logs_and_metrics import CLUSTER_DIMENSION, NAMESPACE, UNITS
from tests.infra.templates import Template, walk
from tools.made_part import replaced
from tools.metrics_table import MARKS, PAGE, tables

ROOT = Path(__file__).resolve().parents[3]
TABLE = {metric_plan.name: metric_plan for metric_plan in METRICS}


def _counted(path: Path) -> Iterator[str]:
    """Yield the names a module counts: first words of `count`, keys given to `tell`."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Call(func=ast.Name(id="count"), args=[ast.Constant(value=str(name)), *_]):
                yield name
            case ast.Dict(keys=keys):
                yield from (
                    str(key.value)
                    for key in keys
                    if isinstance(key, ast.Constant) and re.match(r"[A-Z][a-z]", str(key.value))
                )
            case ast.Subscript(value=ast.Name(id="values"), slice=ast.Constant(value=str(name))):
                yield name
            case _:
                pass


def _modules() -> Iterator[Path]:
    yield from (ROOT / "shared" / "runtime").glob("*.py")
    yield from (path for path in (ROOT / "functions").glob("*/handler.py"))


def test_the_table_has_exactly_what_is_counted() -> None:
    counted = {name for path in _modules() for name in _counted(path)}

    assert counted == set(TABLE)
    assert set(UNITS) <= set(TABLE)


def test_each_metric_names_its_function_and_the_next_step() -> None:
    assert len(METRICS) >= 15
    assert len({metric_plan.action for metric_plan in METRICS}) == len(METRICS) == len(TABLE)
    for metric_plan in METRICS:
        assert metric_plan.service in {plan.name for plan in FUNCTIONS}
        assert len(metric_plan.action) > 20
        assert len(metric_plan.action.splitlines()) == 1


def test_the_page_lists_each_metric_as_it_is() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert replaced(page, tables(), MARKS) == page
    assert page.count("\n| `") == len(METRICS)


def _widgets(template: Template) -> list[dict[str, Any]]:
    (dashboard,) = template.of("AWS::CloudWatch::Dashboard")
    widgets: list[dict[str, Any]] = json.loads(dashboard.properties["DashboardBody"])["widgets"]
    return widgets


def test_a_cluster_s_dashboard_shows_each_metric_and_none_of_another_cluster(
    clusters: Mapping[str, Template],
) -> None:
    for name, template in clusters.items():
        lines = [
            line
            for widget in _widgets(template)
            for line in widget["properties"].get("metrics", ())
            if line[0] == NAMESPACE
        ]

        assert {line[1] for line in lines} == {metric_plan.name for metric_plan in METRICS}
        for line in lines:
            words = [word for word in line[2:] if isinstance(word, str)]
            dimensions = dict(zip(words[::2], words[1::2], strict=True))
            of_cluster = TABLE[line[1]].graph is not None
            assert dimensions == {
                **({CLUSTER_DIMENSION: name} if of_cluster else {}),
                "service": TABLE[line[1]].service,
            }


def test_dashboard_has_a_graph_for_each_topic_and_the_next_steps(
    clusters: Mapping[str, Template],
) -> None:
    widgets = _widgets(clusters["prod"])
    titles = [widget["properties"].get("title") for widget in widgets]
    (text,) = [widget["properties"]["markdown"] for widget in widgets if widget["type"] == "text"]

    assert {topic.value for topic in DashboardGraph} <= set(titles)
    for metric_plan in METRICS:
        assert f"| {metric_plan.name} | {metric_plan.action} |" in text


def test_alarms_watch_metrics_that_are_written(
    control_plane: Template, clusters: Mapping[str, Template]
) -> None:
    watched = set()
    for template in (control_plane, clusters["prod"]):
        for alarm in template.of("AWS::CloudWatch::Alarm"):
            for node in walk(alarm.properties):
                if isinstance(node, dict) and node.get("Namespace") == NAMESPACE:
                    watched.add(node["MetricName"])
                    given = {
                        dimension["Name"]: dimension["Value"] for dimension in node["Dimensions"]
                    }
                    assert given["service"] == TABLE[node["MetricName"]].service

    assert len(watched) >= 8
    assert watched <= set(TABLE)


def test_saved_questions_ask_for_fields_that_are_logged(control_plane: Template) -> None:
    fields = {
        "report": set(ProvisionReport.__struct_fields__),
        "findings": set(SweepReport().findings),
        "state": {"result"},
    }
    saved = {
        resource.properties["Name"]: resource
        for resource in control_plane.of("AWS::Logs::QueryDefinition")
    }

    assert set(saved) == {f"Dovetail/{name}" for name in QUERIES}
    for name, (functions, text) in QUERIES.items():
        question = saved[f"Dovetail/{name}"].properties
        assert question["QueryString"] == text
        assert len(question["LogGroupNames"]) == len(functions)
        for part, field in re.findall(r"\b(report|findings|state)\.(\w+)", text):
            assert field in fields[part], f"{name}: {part}.{field}"
