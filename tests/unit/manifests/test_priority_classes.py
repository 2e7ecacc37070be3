from typing import Any

import pytest

from shared.manifests.priority_classes import priorities_of, with_priority
from shared.model.errors import NotAdmittedError


def priority_class(name: str, value: int, **more: Any) -> dict[str, Any]:
    return {"kind": "PriorityClass", "metadata": {"name": name}, "value": value, **more}


CLASSES = (
    priority_class("urgent", 1000),
    priority_class("usual", 7, globalDefault=True),
    priority_class("also", 9, globalDefault=True),
    priority_class("patient", 5, preemptionPolicy="Never"),
)


@pytest.mark.parametrize(
    ("named", "name", "priority", "policy"),
    [
        (None, "usual", 7, "PreemptLowerPriority"),
        ("urgent", "urgent", 1000, "PreemptLowerPriority"),
        ("patient", "patient", 5, "Never"),
        ("system-cluster-critical", "system-cluster-critical", 2_000_000_000, None),
        ("system-node-critical", "system-node-critical", 2_000_001_000, None),
    ],
)
def test_a_pod_gets_what_its_class_or_the_default_says(
    named: str | None, name: str, priority: int, policy: str | None
) -> None:
    spec = {"priorityClassName": named} if named else {}
    assert with_priority(spec, priorities_of(CLASSES)) == {
        "priorityClassName": name,
        "priority": priority,
        "preemptionPolicy": policy or "PreemptLowerPriority",
    }


def test_without_classes_a_pod_has_priority_zero() -> None:
    found = with_priority({"priority": 0}, priorities_of(()))
    assert found == {"priority": 0, "preemptionPolicy": "PreemptLowerPriority"}


def test_a_class_that_is_not_given_adds_nothing() -> None:
    spec = {"priorityClassName": "gone", "priority": 3}
    assert with_priority(spec, priorities_of(CLASSES)) is spec


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"priorityClassName": "urgent", "priority": 3}, "priority 3 is not that of PriorityClass"),
        (
            {"priorityClassName": "patient", "preemptionPolicy": "PreemptLowerPriority"},
            "preemptionPolicy PreemptLowerPriority is not that of PriorityClass patient: Never",
        ),
    ],
    ids=["priority", "policy"],
)
def test_a_pod_against_its_class_is_refused(spec: dict[str, Any], why: str) -> None:
    with pytest.raises(NotAdmittedError, match=why):
        with_priority(spec, priorities_of(CLASSES))


def test_a_number_without_a_class_is_refused() -> None:
    with pytest.raises(NotAdmittedError, match="is not that of pods without a class: 0"):
        with_priority({"priority": 3}, priorities_of(()))
