"""Workloads that a HorizontalPodAutoscaler or a ScaledObject scales."""

import pytest

from tests.unit.cli.running import deployment, read

NOTE = "Deployment default/web is planned with "


def autoscaler(least: int, most: int, target: str = "web") -> dict[str, object]:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {
            "minReplicas": least,
            "maxReplicas": most,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target},
        },
    }


def workload(replicas: int | None) -> dict[str, object]:
    web = deployment()
    spec = {key: value for key, value in web["spec"].items() if key != "replicas"}  # type: ignore[attr-defined]
    return {**web, "spec": spec if replicas is None else {**spec, "replicas": replicas}}


@pytest.mark.parametrize(
    ("stated", "pods", "said"),
    [
        (None, 4, "4 replicas: it states none, and the minReplicas of"),
        (2, 4, "4 replicas: it states 2, and the minReplicas of"),
        (5, 5, ""),
        (30, 20, "20 replicas: it states 30, and the maxReplicas of"),
        (0, 0, ""),
    ],
)
def test_a_workload_has_replicas_within_the_bounds_of_its_autoscaler(
    stated: int | None, pods: int, said: str
) -> None:
    found = read(workload(stated), autoscaler(4, 20))
    assert len(found.snapshot.pending) == pods
    notes = [note.removeprefix(NOTE) for note in found.notes if note.startswith(NOTE)]
    assert [note[: len(said)] for note in notes] == ([said] if said else [])
    assert not any("not read" in note for note in found.notes)


def test_another_kind_that_states_no_replicas_is_planned_with_those_of_its_autoscaler() -> None:
    rollout = {**workload(None), "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}
    scaled = autoscaler(4, 20)
    scaled["spec"]["scaleTargetRef"]["kind"] = "Rollout"  # type: ignore[index]
    assert len(read(rollout, scaled).snapshot.pending) == 4


def test_a_workload_of_scaled_object_has_the_one_replica_that_kubernetes_gives_it() -> None:
    scaled = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "web"},
        "spec": {"scaleTargetRef": {"name": "web"}},
    }
    assert len(read(workload(None), scaled).snapshot.pending) == 1


def test_an_autoscaler_without_its_workload_is_named() -> None:
    (note,) = [note for note in read(workload(1), autoscaler(4, 20, "wbe")).notes if "wbe" in note]
    assert note == (
        "HorizontalPodAutoscaler default/web: left out: Deployment default/wbe, which it scales, "
        "is not among the manifests"
    )
