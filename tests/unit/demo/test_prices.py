"""The bound of a scenario's pods is that of another process, for an empty cluster."""

from typing import Any

import pytest

from infra.local.demo.prices import bound_of, price_of
from infra.local.demo.problem import Problem
from infra.local.demo.scenario import load_scenario, manifests


def test_more_pods_have_a_higher_bound() -> None:
    scenario = load_scenario("consolidate")
    documents = manifests(scenario, ["node-class.yaml", "node-pool.yaml", "deployment.yaml"], 1)
    assert 0 < bound_of(documents, {"consolidate": 20}) < bound_of(documents, {"consolidate": 40})


def test_pools_that_ec2_passes_over_make_the_bound_higher() -> None:
    scenario = load_scenario("four-hundred")
    files = ["node-class.yaml", "later/consolidating.yaml", "deployment.yaml"]
    on_spot, pods = manifests(scenario, files, 1), {"four-hundred": 200}
    assert bound_of(on_spot, pods) < bound_of(on_spot, pods, deep_pools=True)


def test_manifests_that_cannot_be_planned_are_a_problem() -> None:
    broken: dict[str, Any] = {"kind": "Provisioner", "metadata": {"name": "x"}, "spec": 7}
    with pytest.raises(Problem, match="no bound: "):
        bound_of([broken], {})


def test_a_node_of_an_unknown_type_has_no_price() -> None:
    assert price_of({}) == 0
