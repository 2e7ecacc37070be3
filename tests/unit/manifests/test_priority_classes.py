from typing import Any

import pytest

from shared.manifests.priority_classes import priorities_of, with_priority


def priority_class(name: str, value: int, **more: Any) -> dict[str, Any]:
    return {"kind": "PriorityClass", "metadata": {"name": name}, "value": value, **more}


CLASSES = (
    priority_class("urgent", 1000),
    priority_class("usual", 7, globalDefault=True),
    priority_class("also", 9, globalDefault=True),
)


@pytest.mark.parametrize(
    ("spec", "priority"),
    [
        ({}, 7),
        ({"priorityClassName": "urgent"}, 1000),
        ({"priorityClassName": "gone"}, None),
        ({"priorityClassName": "system-cluster-critical"}, 2_000_000_000),
        ({"priorityClassName": "system-node-critical"}, 2_000_001_000),
        ({"priorityClassName": "urgent", "priority": 3}, 3),
        ({"priority": 0}, 0),
    ],
)
def test_a_pod_gets_the_number_of_its_class_or_of_the_default(
    spec: dict[str, Any], priority: int | None
) -> None:
    assert with_priority(spec, priorities_of(CLASSES)).get("priority") == priority


def test_without_classes_nothing_is_added() -> None:
    spec: dict[str, Any] = {"containers": []}
    assert with_priority(spec, priorities_of(())) is spec
