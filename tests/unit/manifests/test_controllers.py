"""Pods as controllers make them."""

from typing import Any

import pytest

from shared.manifests.controllers import Workload, controller_labels, missing_identities

INDEX = "batch.kubernetes.io/job-completion-index"


def workload(kind: str, status: Any = None, **spec: Any) -> Workload:
    return Workload(kind=kind, namespace="m", name="w", spec=spec, status=status or {})


def names(made: Workload, wanted: int, *taken: str) -> list[str]:
    return [entry.name for entry in missing_identities(made, wanted, {name: {} for name in taken})]


def test_pods_are_numbered_without_those_that_are_there() -> None:
    assert names(workload("Deployment"), 3, "w-1", "w-x7") == ["w-0"]
    assert names(workload("Deployment"), 1, "w-1", "w-x7") == []


def test_pods_of_a_stateful_set_are_numbered_from_its_start() -> None:
    start = workload("StatefulSet", ordinals={"start": 5})
    assert names(start, 3, "w-6", "w-0") == ["w-5", "w-7"]
    (first, _) = missing_identities(start, 2, {})
    assert {**first.labels, "controller-revision-hash": ""} == {
        "statefulset.kubernetes.io/pod-name": "w-5",
        "apps.kubernetes.io/pod-index": "5",
        "controller-revision-hash": "",
    }
    assert first.labels["controller-revision-hash"].startswith("w-")
    updating = workload("StatefulSet", {"updateRevision": "w-7f"})
    assert controller_labels(updating) == {"controller-revision-hash": "w-7f"}


def test_pods_of_an_indexed_job_are_those_of_the_indexes_that_are_left() -> None:
    job = workload("Job", {"completedIndexes": "0-2,5,x,99999999999"}, completionMode="Indexed")
    running = {"w-4-abcde": {INDEX: "4"}}
    found = list(missing_identities(job, 3, running))
    assert [(made.name, made.labels[INDEX]) for made in found] == [("w-3", "3"), ("w-6", "6")]


def test_a_job_adds_its_name_and_uid_unless_its_selector_is_its_authors() -> None:
    job = Workload(kind="Job", namespace="m", name="w", spec={}, metadata={"uid": "u"})
    assert controller_labels(job) == {
        "job-name": "w",
        "batch.kubernetes.io/job-name": "w",
        "controller-uid": "u",
        "batch.kubernetes.io/controller-uid": "u",
    }
    own = {"template": {"metadata": {"labels": {"job-name": "other"}}}}
    assert controller_labels(workload("Job", **own))["job-name"] == "other"
    assert controller_labels(workload("Job", manualSelector=True)) == {}


def test_a_daemon_has_the_generation_of_its_template() -> None:
    metadata = {"annotations": {"deprecated.daemonset.template.generation": "4"}}
    made = Workload(kind="DaemonSet", namespace="m", name="w", spec={}, metadata=metadata)
    assert controller_labels(made)["pod-template-generation"] == "4"
    assert controller_labels(workload("DaemonSet"))["pod-template-generation"] == "1"


@pytest.mark.parametrize("kind", ["ReplicaSet", "ReplicationController", "Rollout"])
def test_other_controllers_add_no_label(kind: str) -> None:
    assert controller_labels(workload(kind)) == {}
