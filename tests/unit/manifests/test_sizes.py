"""How much one pod may ask for."""

from typing import Any

import pytest

from shared.manifests import sizes
from shared.manifests.daemonsets import decode_daemonset
from shared.manifests.pods import decode_pod
from tests.benchmarks.planning.bounded import expressions, raw_pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def alternatives(count: int) -> dict[str, Any]:
    terms = [expressions("team", "In", f"t{number}") for number in range(count)]
    return raw_pod("a", {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}})


def preferences(count: int) -> dict[str, Any]:
    """A third each about nodes, about pods to be near, and spreads that may be broken."""
    nodes = [
        {"weight": 1, "preference": expressions("team", "In", f"t{number}")}
        for number in range(count // 3)
    ]
    pods = [{"weight": 1, "podAffinityTerm": apart(number)} for number in range(count // 3)]
    left = count - 2 * (count // 3)
    affinity = {"nodeAffinity": {PREFERRED: nodes}, "podAffinity": {PREFERRED: pods}}
    return raw_pod("a", affinity, topologySpreadConstraints=[spread("ScheduleAnyway")] * left)


def rules(count: int) -> dict[str, Any]:
    terms = [apart(number) for number in range(count - 1)]
    affinity = {"podAntiAffinity": {REQUIRED: terms}}
    return raw_pod("a", affinity, topologySpreadConstraints=[spread("DoNotSchedule")])


def apart(number: int) -> dict[str, Any]:
    return {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": f"a{number}"}},
        "namespaceSelector": {},
    }


def spread(policy: str) -> dict[str, Any]:
    return {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": policy, "labelSelector": {}}


def selectors(count: int) -> dict[str, Any]:
    return raw_pod("a", nodeSelector={f"k{number}": "v" for number in range(count)})


def tolerations(count: int) -> dict[str, Any]:
    return raw_pod("a", tolerations=[{"key": f"k{n}", "operator": "Exists"} for n in range(count)])


def host_ports(count: int) -> dict[str, Any]:
    ports = [{"hostPort": 1 + number} for number in range(count)]
    return raw_pod("a", containers=[{"name": "main", "ports": ports}])


def resources(count: int) -> dict[str, Any]:
    asked = {f"example.com/r{number}": "1" for number in range(count - 1)}
    return raw_pod("a", containers=[{"name": "main", "resources": {"requests": asked}}])


@pytest.mark.parametrize(
    ("made", "most", "words"),
    [
        (alternatives, sizes.MOST_TERMS, "OR-ed terms of required node affinity"),
        (preferences, sizes.MOST_PREFERENCES, "preferences"),
        (rules, sizes.MOST_RULES, "required affinities to pods and topology spreads"),
        (selectors, sizes.MOST_EXPRESSIONS, "expressions in affinities, selectors and spreads"),
        (tolerations, sizes.MOST_TOLERATIONS, "tolerations"),
        (host_ports, sizes.MOST_HOST_PORTS, "host ports"),
        (resources, sizes.MOST_RESOURCES, "resources"),
    ],
)
def test_a_pod_above_a_bound_is_refused_with_its_number(made: Any, most: int, words: str) -> None:
    assert decode_pod(made(most)).scheduling.refusals == ()
    (refusal,) = decode_pod(made(most + 1)).scheduling.refusals
    assert refusal == f"{most + 1} {words}: no node is launched for a pod with more than {most}"


@pytest.mark.parametrize("section", ["nodeAffinity", "podAntiAffinity"])
def test_expressions_are_counted_before_they_are_read(section: str) -> None:
    # Expressions about one key are intersected: a pod full of them would take minutes to read.
    many = [
        {"key": "team", "operator": "NotIn", "values": [f"t{number}"]}
        for number in range(sizes.MOST_EXPRESSIONS + 1)
    ]
    term: Any = {"matchExpressions": many}
    if section == "nodeAffinity":
        affinity: Any = {section: {REQUIRED: {"nodeSelectorTerms": [term]}}}
    else:
        affinity = {section: {REQUIRED: [{"topologyKey": "zone", "labelSelector": term}]}}
    found = decode_pod(raw_pod("a", affinity)).scheduling
    assert any(f"{len(many)} expressions" in refusal for refusal in found.refusals)


def test_a_daemonset_above_a_bound_is_left_out() -> None:
    def made(count: int) -> dict[str, Any]:
        spec = {"template": {"spec": alternatives(count)["spec"]}}
        return {"metadata": {"namespace": "default", "name": "d"}, "spec": spec}

    assert decode_daemonset(made(sizes.MOST_TERMS)).problem == ""
    assert "OR-ed terms" in decode_daemonset(made(sizes.MOST_TERMS + 1)).problem
