"""Node affinity, spreads and pod (anti-)affinity."""

from typing import Any

import pytest

from shared.manifests.pods import decode_pod
from shared.model.kubernetes.pods import LabelSelector, Scheduling, SpreadPolicy
from shared.model.requirements import Requirement, Requirements

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def scheduling(spec: dict[str, Any], labels: dict[str, str] | None = None) -> Scheduling:
    metadata = {"namespace": "shop", "name": "p", "labels": labels or {}}
    return decode_pod({"metadata": metadata, "spec": spec}).scheduling


def node_affinity(*terms: dict[str, Any], preferred: Any = None) -> dict[str, Any]:
    inside: dict[str, Any] = {PREFERRED: preferred or []}
    if terms:
        inside[REQUIRED] = {"nodeSelectorTerms": list(terms)}
    return {"affinity": {"nodeAffinity": inside}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def test_the_node_selector_uses_stable_names() -> None:
    found = scheduling({"nodeSelector": {"beta.kubernetes.io/arch": "arm64"}})
    assert found.node_selector.items == (Requirement.of("kubernetes.io/arch", "arm64"),)


def test_required_terms_are_alternatives_and_empty_ones_select_nothing() -> None:
    found = scheduling(
        node_affinity(
            {"matchExpressions": [expression("a", "In", "1"), expression("b", "Exists")]},
            {},
            {"matchExpressions": [expression("c", "Gt", "3")]},
        )
    )
    assert [[requirement.describe() for requirement in term] for term in found.required_terms] == [
        ["a in [1]", "b exists"],
        ["c >= 4"],
    ]
    assert found.refusals == ()


def test_required_terms_that_select_nothing_refuse_the_pod() -> None:
    assert "select no node" in scheduling(node_affinity({})).refusals[0]


@pytest.mark.parametrize(
    "wanted",
    [
        expression("team", "In", "x --anonymous-auth=true --authorization-mode=AlwaysAllow"),
        expression("team", "NotIn", "x\nExecStartPre=/bin/touch"),
        expression("team", "In", "red", "x,node-role=boss"),
        expression("a b", "Exists"),
    ],
)
def test_affinity_that_no_label_can_meet_refuses_the_pod(wanted: dict[str, Any]) -> None:
    required = scheduling(node_affinity({"matchExpressions": [wanted]}))
    wish = [{"weight": 1, "preference": {"matchExpressions": [wanted]}}]
    for found in (required, scheduling(node_affinity(preferred=wish))):
        assert found.refusals[0].startswith(f"node affinity: {wanted['key']}: ")


def test_a_name_that_a_node_must_have_refuses_the_pod() -> None:
    names = [expression("metadata.name", operator, "n1") for operator in ("NotIn", "In")]
    found = scheduling(node_affinity({"matchFields": names}, {}))
    assert "matchFields" in found.refusals[0]
    assert len(found.refusals) == 1


def test_a_name_that_a_node_must_not_have_is_compared_with_hostnames() -> None:
    by_field = {"matchFields": [expression("metadata.name", "NotIn", "n1")]}
    arm = {"matchExpressions": [expression("kubernetes.io/arch", "In", "arm64")]}
    found = scheduling(node_affinity(by_field, {**by_field, **arm}))
    assert [[requirement.describe() for requirement in term] for term in found.required_terms] == [
        ["kubernetes.io/hostname not in [n1]"],
        ["kubernetes.io/arch in [arm64]", "kubernetes.io/hostname not in [n1]"],
    ]
    assert found.refusals == ()


def test_an_alternative_with_match_fields_leaves_the_others() -> None:
    by_field = {
        "matchFields": [expression("metadata.name", "In", "n1")],
        "matchExpressions": [expression("a", "Exists")],
    }
    found = scheduling(node_affinity(by_field, {"matchExpressions": [expression("b", "Exists")]}))
    assert [term.items[0].key for term in found.required_terms] == ["b"]
    assert found.refusals == ()


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (expression("a", "Near", "1"), "operator 'Near' is unknown"),
        (expression("a", "In"), "at least one value"),
        (expression("a", "Gt", "x"), "exactly one integer"),
    ],
)
def test_a_node_expression_that_cannot_be_read_refuses_the_pod(
    entry: dict[str, Any], words: str
) -> None:
    found = scheduling(node_affinity({"matchExpressions": [entry]}))
    assert words in found.refusals[0]


def test_preferred_terms_come_heaviest_first_without_those_that_name_nodes() -> None:
    def term(weight: int, key: str, **more: Any) -> dict[str, Any]:
        preference = {"matchExpressions": [expression(key, "Exists")], **more}
        return {"weight": weight, "preference": preference}

    by_field = {"matchFields": [expression("metadata.name", "In", "n1")]}
    preferred = [term(1, "a"), term(50, "b"), term(50, "c"), term(9, "d", **by_field), {}]
    found = scheduling(node_affinity(preferred=preferred))
    assert [
        (preferred_node.weight, preferred_node.requirements.items[0].key)
        for preferred_node in found.preferred_nodes
    ] == [
        (50, "b"),
        (50, "c"),
        (1, "a"),
    ]
    assert found.required_terms == ()


def test_a_spread_has_the_defaults_of_kubernetes() -> None:
    spread = {
        "topologyKey": "failure-domain.beta.kubernetes.io/zone",
        "maxSkew": 2,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    (found,) = scheduling({"topologySpreadConstraints": [spread]}).spreads
    assert (found.key, found.max_skew) == ("topology.kubernetes.io/zone", 2)
    assert found.policy == SpreadPolicy.SCHEDULE_ANYWAY
    assert found.selector == LabelSelector(match_labels=(("app", "x"),))
    assert (found.honor_affinity, found.honor_taints, found.min_domains) == (True, False, None)


def test_a_spread_may_change_every_default() -> None:
    spread = {
        "topologyKey": "zone",
        "minDomains": 3,
        "nodeAffinityPolicy": "Ignore",
        "nodeTaintsPolicy": "Honor",
    }
    (found,) = scheduling({"topologySpreadConstraints": [spread]}).spreads
    assert (found.max_skew, found.policy) == (1, SpreadPolicy.DO_NOT_SCHEDULE)
    assert (found.honor_affinity, found.honor_taints, found.min_domains) == (False, True, 3)
    assert found.selector is None


def test_an_unknown_spread_policy_refuses_the_pod() -> None:
    spread = {"topologyKey": "zone", "whenUnsatisfiable": "Maybe"}
    found = scheduling({"topologySpreadConstraints": [spread]})
    assert found.spreads == ()
    assert "whenUnsatisfiable: 'Maybe'" in found.refusals[0]


def test_match_label_keys_narrow_the_selector_to_the_pods_own_values() -> None:
    spread = {
        "topologyKey": "zone",
        "maxSkew": 1,
        "labelSelector": {"matchLabels": {"app": "x"}},
        "matchLabelKeys": ["pod-template-hash", "absent"],
    }
    labels = {"app": "x", "pod-template-hash": "abc"}
    (found,) = scheduling({"topologySpreadConstraints": [spread]}, labels).spreads
    assert found.selector is not None
    assert found.selector.selects(labels)
    assert not found.selector.selects({**labels, "pod-template-hash": "other"})

    without = {**spread, "labelSelector": None}
    (none,) = scheduling({"topologySpreadConstraints": [without]}, labels).spreads
    assert none.selector is None


def test_pod_affinity_fills_in_the_pods_own_namespace() -> None:
    def term(**more: Any) -> dict[str, Any]:
        return {"topologyKey": "zone", "labelSelector": {}, **more}

    required = [
        term(),
        term(namespaces=["b", "a"]),
        term(namespaceSelector={"matchLabels": {"team": "x"}}),
        term(namespaceSelector={}),
    ]
    found = scheduling({"affinity": {"podAffinity": {REQUIRED: required}}}).affinity
    assert [term.namespaces for term in found] == [("shop",), ("a", "b"), (), ()]
    assert found[2].namespace_selector == LabelSelector(match_labels=(("team", "x"),))
    assert found[3].namespace_selector == LabelSelector()
    assert all(term.weight is None for term in found)


def test_anti_affinity_keeps_required_terms_before_preferred_ones_by_weight() -> None:
    def preferred(weight: int, key: str) -> dict[str, Any]:
        return {"weight": weight, "podAffinityTerm": {"topologyKey": key}}

    section = {
        REQUIRED: [{"topologyKey": "r"}],
        PREFERRED: [preferred(3, "a"), preferred(70, "b")],
    }
    found = scheduling({"affinity": {"podAntiAffinity": section}}).anti_affinity
    assert [(term.key, term.weight) for term in found] == [("r", None), ("b", 70), ("a", 3)]


def test_mismatch_label_keys_exclude_the_pods_own_values() -> None:
    term = {
        "topologyKey": "zone",
        "labelSelector": {"matchExpressions": [expression("app", "In", "x", "y")]},
        "mismatchLabelKeys": ["tenant"],
    }
    labels = {"app": "x", "tenant": "one"}
    spec = {"affinity": {"podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": term}]}}}
    (found,) = scheduling(spec, labels).anti_affinity
    assert found.selector is not None
    assert found.selector.selects({"app": "y", "tenant": "two"})
    assert found.selector.selects({"app": "y"})
    assert not found.selector.selects(labels)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (expression("a", "Gt", "1"), "operator 'Gt' is not for pod labels"),
        (expression("a", "NotIn"), "at least one value"),
    ],
)
def test_a_label_selector_that_cannot_be_read_refuses_the_pod(
    entry: dict[str, Any], words: str
) -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchExpressions": [entry]}}
    found = scheduling({"affinity": {"podAffinity": {REQUIRED: [term]}}})
    assert words in found.refusals[0]


@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabels": {"app": "{{ name }}"}},
        {"matchLabels": {"{{ name }}": "a"}},
        {"matchExpressions": [expression("app", "In", "a", "{{ name }}")]},
        {"matchExpressions": [expression("{{ name }}", "Exists")]},
    ],
    ids=["value", "key", "value of an expression", "key of an expression"],
)
def test_a_selector_for_a_label_that_no_pod_can_have_refuses_the_pod(selector: Any) -> None:
    spread = {"topologyKey": "zone", "maxSkew": 1, "labelSelector": selector}
    (found,) = scheduling({"topologySpreadConstraints": [spread]}).refusals
    assert found.startswith("spec.topologySpreadConstraints[0]: labelSelector: ")
    assert "{{ name }}" in found


def test_a_selectors_keys_are_labels_of_pods_so_node_aliases_do_not_apply() -> None:
    key = "beta.kubernetes.io/arch"
    term = {"topologyKey": "z", "labelSelector": {"matchExpressions": [expression(key, "Exists")]}}
    (found,) = scheduling({"affinity": {"podAffinity": {REQUIRED: [term]}}}).affinity
    assert found.selector is not None
    assert found.selector.requirements == Requirements((Requirement(key=key),))
