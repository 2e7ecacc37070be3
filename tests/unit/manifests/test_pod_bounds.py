"""How much one pod may ask for."""

from typing import Any

import pytest

from shared.manifests import pod_bounds
from shared.manifests.affinity import label_selector, required_node_terms
from shared.manifests.daemonsets import decode_daemonset
from shared.manifests.pods import decode_pod
from shared.model.kubernetes.pods import AffinityTerm, LabelSelector, Scheduling
from shared.model.requirements import Requirements
from tests.benchmarks.planning.bounded import expressions, raw_pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ANY = LabelSelector()
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
        (alternatives, pod_bounds.MAX_TERMS, "OR-ed terms of required node affinity"),
        (preferences, pod_bounds.MAX_PREFERENCES, "preferences"),
        (rules, pod_bounds.MAX_RULES, "required affinities to pods and topology spreads"),
        (selectors, pod_bounds.MAX_EXPRESSIONS, "expressions in affinities, selectors and spreads"),
        (tolerations, pod_bounds.MAX_TOLERATIONS, "tolerations"),
        (host_ports, pod_bounds.MAX_HOST_PORTS, "host ports"),
        (resources, pod_bounds.MAX_RESOURCES, "resources"),
    ],
)
def test_a_pod_above_a_bound_is_refused_with_its_number(made: Any, most: int, words: str) -> None:
    assert decode_pod(made(most)).scheduling.refusals == ()
    (refusal,) = decode_pod(made(most + 1)).scheduling.refusals
    assert refusal == f"{most + 1} {words}: no node is launched for a pod with more than {most}"


def standing(terms: list[dict[str, Any]]) -> Scheduling:
    """Return what is read of a pod on a node with these required anti-affinity terms."""
    raw = raw_pod("a", {"podAntiAffinity": {REQUIRED: terms}, "podAffinity": {}}, nodeName="n")
    return decode_pod(raw).scheduling


def keeping_away(key: str, **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "x"}}, **more}


def test_a_bound_pod_above_a_bound_keeps_its_first_terms_and_a_wider_one_for_each_key() -> None:
    terms = [apart(number) for number in range(pod_bounds.MAX_RULES)]
    more = [
        keeping_away("zone"),
        keeping_away("zone", namespaces=["c", "b"]),
        keeping_away("rack", namespaces=["b"], namespaceSelector={"matchLabels": {"team": "x"}}),
    ]
    found = standing([*terms, *more])
    assert found.anti_affinity[: len(terms)] == standing(terms).anti_affinity
    assert found.anti_affinity[len(terms) :] == (
        AffinityTerm(key="zone", selector=ANY, namespaces=("b", "c", "tenant")),
        AffinityTerm(key="rack", selector=ANY, namespaces=("b",), namespace_selector=ANY),
    )
    (told,) = found.refusals
    assert found.beyond == (told,)
    assert told.startswith(f"{len(terms) + 3} required affinities to pods")


def test_terms_with_more_expressions_than_a_bound_are_widened() -> None:
    many = {"matchLabels": {f"k{number}": "v" for number in range(pod_bounds.MAX_EXPRESSIONS)}}
    terms = [keeping_away("zone"), keeping_away("zone", labelSelector=many)]
    kept, wide = standing(terms).anti_affinity
    assert kept == standing(terms[:1]).anti_affinity[0]
    assert wide == AffinityTerm(key="zone", selector=ANY, namespaces=("tenant",))


def test_of_keys_that_are_not_well_known_a_bound_number_is_kept() -> None:
    keys_named = [f"example.com/k{number}" for number in range(3 * pod_bounds.MAX_RULES)]
    terms = [keeping_away(key) for key in (*keys_named, "kubernetes.io/hostname")]
    found = standing(terms).anti_affinity
    assert len(found) == 2 * pod_bounds.MAX_RULES + 1
    assert found[-1].key == "kubernetes.io/hostname"


@pytest.mark.parametrize("section", ["nodeAffinity", "podAntiAffinity"])
def test_expressions_are_counted_before_they_are_read(section: str) -> None:
    # Expressions about one key are intersected: a pod full of them would take minutes to read.
    many = [
        {"key": "team", "operator": "NotIn", "values": [f"t{number}"]}
        for number in range(pod_bounds.MAX_EXPRESSIONS + 1)
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

    assert decode_daemonset(made(pod_bounds.MAX_TERMS)).problem == ""
    assert "OR-ed terms" in decode_daemonset(made(pod_bounds.MAX_TERMS + 1)).problem


def test_expressions_of_objects_that_are_no_pods_are_counted_too() -> None:
    expression = {"key": "team", "operator": "NotIn", "values": ["a"]}
    many = {"matchExpressions": [expression] * (pod_bounds.MAX_EXPRESSIONS + 1)}
    problems: list[str] = []
    assert label_selector(many, "spec", problems) == ANY
    of_volume = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [many]}}}
    assert required_node_terms(of_volume, problems) == (Requirements(),)
    told = "2001 expressions: no node is launched for a pod with more than 2000"
    assert problems == [f"spec: labelSelector: {told}", f"node affinity: {told}"]
