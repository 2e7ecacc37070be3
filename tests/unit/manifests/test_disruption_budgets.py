"""PodDisruptionBudgets, read from what the API server says."""

from shared.manifests.disruption_budgets import decode_budget
from tests.builders import pod


def test_a_budget_is_read_as_its_controller_last_counted() -> None:
    one = decode_budget(
        {
            "metadata": {"namespace": "default", "name": "web"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 1},
            "status": {"disruptionsAllowed": 2},
        }
    )
    assert (one.namespace, one.name, one.disruptions_allowed) == ("default", "web", 2)
    assert one.protects(pod())
    assert not one.protects(pod(labels={"app": "db"}))


def test_one_without_a_count_allows_nothing_and_without_a_selector_protects_no_pod() -> None:
    one = decode_budget({"metadata": {"namespace": "default", "name": "web"}, "spec": {}})
    assert one.disruptions_allowed == 0
    assert not one.protects(pod())


def test_an_empty_selector_protects_all_of_its_namespace() -> None:
    raw = {"metadata": {"namespace": "default", "name": "all"}, "spec": {"selector": {}}}
    assert decode_budget(raw).protects(pod())
    assert not decode_budget(raw).protects(pod(namespace="other"))
