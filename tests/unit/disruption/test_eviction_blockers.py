"""Who holds a node."""

from datetime import timedelta

from shared.disruption.eviction_blockers import (
    blocking_reason,
    eviction_blockers,
    protecting_budgets,
)
from shared.model import labels as keys
from shared.model.kubernetes.pods import ControllerRef
from tests.builders import NOW, budget, pod

HELD = {keys.DO_NOT_EVICT: "true"}


def test_an_annotation_and_a_budget_that_allows_nothing_hold() -> None:
    marked, guarded = pod("a", annotations=HELD, labels={}), pod("b")
    found = eviction_blockers([guarded, marked], [budget()], NOW)
    assert [(hold.pod.name, hold.reason) for hold in found] == [
        ("a", f"pod default/a has the annotation {keys.DO_NOT_EVICT}"),
        ("b", "PodDisruptionBudget web holds pod default/b"),
    ]


def test_a_budget_that_allows_some_or_is_of_others_holds_no_pod() -> None:
    guarded = pod("b")
    assert eviction_blockers([guarded], [budget(allowed=1), budget(namespace="other")], NOW) == ()
    assert eviction_blockers([pod("b", annotations={keys.DO_NOT_EVICT: "false"})], [], NOW) == ()


def test_two_budgets_over_one_pod_hold_it_for_ever() -> None:
    said = blocking_reason(pod("b"), [budget(5, name="x"), budget(5, name="w")], NOW)
    assert said == "pod default/b is under several PodDisruptionBudgets: w, x"


def test_pods_that_may_stay_or_terminate_block_nothing() -> None:
    static = pod("s", annotations=HELD, owner=ControllerRef(kind="Node", name="n1", uid="n"))
    daemon = pod("d", annotations=HELD, owner=ControllerRef(kind="DaemonSet", name="d", uid="d"))
    ended = pod("e", annotations=HELD, phase="Succeeded")
    leaving = pod("l", annotations=HELD, deletion_at=NOW + timedelta(seconds=30))
    assert eviction_blockers([static, daemon, ended, leaving], [budget()], NOW) == ()


def test_a_refused_eviction_names_the_budgets_that_protect_the_pod() -> None:
    other = budget(name="other", namespace="other")
    guarded = pod(labels={"app": "web"})
    assert protecting_budgets(guarded, [budget(), other]) == "PodDisruptionBudget web"
    both = "PodDisruptionBudget a and web"
    assert protecting_budgets(guarded, [budget(), budget(name="a")]) == both
    assert protecting_budgets(guarded, [other]) == "a PodDisruptionBudget"


def test_the_annotation_of_either_version_holds_a_pod() -> None:
    held = pod("b", annotations={keys.DO_NOT_DISRUPT: "true"})
    (found,) = eviction_blockers([held], [], NOW)
    assert found.reason == "pod default/b has the annotation karpenter.sh/do-not-disrupt"
