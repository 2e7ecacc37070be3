"""The brakes in a Provisioner's annotations."""

from typing import Any

import pytest

from shared.manifests.custom_resources.brakes import ProvisionerBrakes, read_brakes
from shared.manifests.problems import FieldProblem, Section
from shared.model.brakes import Brakes, Ceiling


def read(annotations: Any) -> tuple[ProvisionerBrakes, list[FieldProblem]]:
    problems: list[FieldProblem] = []
    metadata = Section({"annotations": annotations}, "metadata", problems)
    return read_brakes(metadata), problems


@pytest.mark.parametrize("annotations", [None, {}, {"other": "1"}, "text"])
def test_without_annotations_nothing_brakes(annotations: Any) -> None:
    assert read(annotations) == (ProvisionerBrakes(), [])


def test_ceilings_are_read_to_the_micro_dollar() -> None:
    found, problems = read(
        {"dovetail.dev/max-nodes": "10", "dovetail.dev/max-price-per-hour": "12.500001"}
    )
    assert found.ceiling == Ceiling(max_nodes=10, max_price_micros_per_hour=12_500_001)
    assert not problems


@pytest.mark.parametrize(("value", "shadow"), [("true", True), ("", True), ("False", False)])
def test_any_value_but_false_is_shadow(value: str, *, shadow: bool) -> None:
    assert read({"dovetail.dev/shadow": value})[0].shadow is shadow


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("max-nodes", "ten"),
        ("max-nodes", "-1"),
        ("max-nodes", "1.5"),
        ("max-nodes", 10),
        ("max-price-per-hour", "$3"),
        ("max-price-per-hour", "1e3"),
        ("max-price-per-hour", "nan"),
        ("max-price-per-hour", 3.5),
    ],
)
def test_a_brake_that_cannot_be_read_is_refused(key: str, value: Any) -> None:
    found, (problem,) = read({f"dovetail.dev/{key}": value})
    assert not found.ceiling
    assert problem.field == f"metadata.annotations.dovetail.dev/{key}"
    assert "write" in problem.remedy


def test_the_tighter_of_two_brakes_holds() -> None:
    one = Brakes(paused=True, ceiling=Ceiling(max_nodes=3))
    other = Brakes(shadow=True, ceiling=Ceiling(max_nodes=5, max_price_micros_per_hour=7))
    both = one.stricter(other)
    assert both == Brakes(
        paused=True, shadow=True, ceiling=Ceiling(max_nodes=3, max_price_micros_per_hour=7)
    )
    assert both.forbids_changes
    assert not Brakes(ceiling=Ceiling(max_nodes=0)).forbids_changes
    assert not Ceiling()
