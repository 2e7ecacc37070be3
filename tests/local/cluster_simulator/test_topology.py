"""Topology spread and inter-pod affinity, rule by rule."""

from typing import Any

import pytest

from infra.local.cluster_simulator.rules.matching import ClusterView
from infra.local.cluster_simulator.rules.topology import (
    AFFINITY,
    ANTI_AFFINITY,
    EXISTING_ANTI_AFFINITY,
    SPREAD,
    SPREAD_LABEL,
)
from tests.local.cluster_simulator.placing import ZONE, Json, check, make_node, make_pod, required

SAME_APP = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": ZONE}


def spread(**more: Any) -> Json:
    rule = {**SAME_APP, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **more}
    return make_pod(topologySpreadConstraints=[rule])


def test_spread_keeps_the_skew() -> None:
    a, b, bare = make_node("na", "a"), make_node("nb", "b"), make_node("nc", None)
    view = ClusterView(nodes=[a, b, bare], pods=[make_pod("x", on="na")])
    assert check(spread(), a, view) == [SPREAD]
    assert check(spread(), b, view) == []
    assert check(spread(), bare, view) == [SPREAD_LABEL]
    assert check(spread(maxSkew=2), a, view) == []
    assert check(spread(whenUnsatisfiable="ScheduleAnyway"), a, view) == []
    leaving = make_pod("x", on="na")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert check(spread(), a, ClusterView(nodes=[a, b], pods=[leaving])) == []


def test_spread_needs_its_minimum_of_domains() -> None:
    a = make_node("na", "a")
    view = ClusterView(nodes=[a], pods=[make_pod("x", on="na")])
    assert check(spread(), a, view) == []
    assert check(spread(minDomains=2), a, view) == [SPREAD]


def test_spread_policies_choose_which_nodes_count() -> None:
    a, b = make_node("na", "a"), make_node("nb", "b")
    view = ClusterView(nodes=[a, b], pods=[make_pod("x", on="na")])
    only_a = spread()
    only_a["spec"]["nodeSelector"] = {ZONE: "a"}
    assert check(only_a, a, view) == []
    only_a["spec"]["topologySpreadConstraints"][0]["nodeAffinityPolicy"] = "Ignore"
    assert check(only_a, a, view) == [SPREAD]
    b["spec"]["taints"] = [{"key": "k", "effect": "NoSchedule"}]
    assert check(spread(), a, view) == [SPREAD]
    assert check(spread(nodeTaintsPolicy="Honor"), a, view) == []


def test_spread_counts_only_pods_with_the_same_match_label() -> None:
    a, b = make_node("na", "a"), make_node("nb", "b")
    old = make_pod("x", on="na")
    old["metadata"]["labels"]["version"] = "1"
    new = spread(matchLabelKeys=["version"])
    new["metadata"]["labels"]["version"] = "2"
    view = ClusterView(nodes=[a, b], pods=[old])
    assert check(new, a, view) == []
    new["metadata"]["labels"]["version"] = "1"
    assert check(new, a, view) == [SPREAD]


def test_affinity_follows_matching_pods_and_the_first_of_a_kind_fits_anywhere() -> None:
    a, b = make_node("na", "a"), make_node("nb", "b")
    pod = make_pod(affinity=required("podAffinity", [SAME_APP]))
    assert check(pod, a, ClusterView(nodes=[a, b])) == []
    view = ClusterView(nodes=[a, b], pods=[make_pod("x", on="nb")])
    assert check(pod, a, view) == [AFFINITY]
    assert check(pod, b, view) == []
    stranger = make_pod(affinity=required("podAffinity", [SAME_APP]))
    stranger["metadata"]["labels"] = {"app": "other"}
    assert check(stranger, a, ClusterView(nodes=[a, b])) == [AFFINITY]
    assert check(pod, make_node("nc", None), ClusterView(nodes=[a, b])) == [AFFINITY]


def test_anti_affinity_holds_in_both_directions() -> None:
    a, b = make_node("na", "a"), make_node("nb", "b")
    rule = required("podAntiAffinity", [SAME_APP])
    plain = ClusterView(nodes=[a, b], pods=[make_pod("x", on="na")])
    assert check(make_pod(affinity=rule), a, plain) == [ANTI_AFFINITY]
    assert check(make_pod(affinity=rule), b, plain) == []
    shy = ClusterView(nodes=[a, b], pods=[make_pod("x", on="na", affinity=rule)])
    assert check(make_pod(), a, shy) == [EXISTING_ANTI_AFFINITY]
    assert check(make_pod(), b, shy) == []


@pytest.mark.parametrize(
    ("scope", "reasons"),
    [
        ({}, []),
        ({"namespaces": ["team"]}, [ANTI_AFFINITY]),
        ({"namespaceSelector": {}}, [ANTI_AFFINITY]),
        ({"namespaceSelector": {"matchLabels": {"kind": "team"}}}, [ANTI_AFFINITY]),
        ({"namespaceSelector": {"matchLabels": {"kind": "other"}}}, []),
        ({"namespaceSelector": {}, "mismatchLabelKeys": ["app"]}, []),
    ],
)
def test_affinity_terms_reach_the_namespaces_they_name(scope: Json, reasons: list[str]) -> None:
    a = make_node("na", "a")
    other = make_pod("x", on="na")
    other["metadata"]["namespace"] = "team"
    view = ClusterView(nodes=[a], pods=[other], namespaces={"team": {"kind": "team"}})
    pod = make_pod(affinity=required("podAntiAffinity", [{**SAME_APP, **scope}]))
    assert check(pod, a, view) == reasons


def test_a_selector_of_everything_counts_no_pods_in_a_spread() -> None:
    a, b = make_node("na", "a"), make_node("nb", "b")
    view = ClusterView(nodes=[a, b], pods=[make_pod("x", on="na"), make_pod("y", on="na")])
    assert check(spread(labelSelector={}), a, view) == []
    # The pod itself still adds one, so nothing but the skew of one is possible.
    assert check(spread(labelSelector={}, matchLabelKeys=["app"]), a, view) == [SPREAD]


def test_pods_that_have_ended_count_for_nothing() -> None:
    a, b = make_node("na", "a"), make_node("nb", "b")
    rule = required("podAntiAffinity", [SAME_APP])
    ended = make_pod("x", on="na", affinity=rule) | {"status": {"phase": "Succeeded"}}
    view = ClusterView(nodes=[a, b], pods=[ended])
    assert check(make_pod(affinity=rule), a, view) == []
    assert check(spread(), a, view) == []


def test_a_pod_on_its_way_out_still_repels_and_attracts() -> None:
    a, b = make_node("na", "a"), make_node("nb", "b")
    leaving = make_pod("x", on="na")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    view = ClusterView(nodes=[a, b], pods=[leaving])
    apart, together = (required(kind, [SAME_APP]) for kind in ("podAntiAffinity", "podAffinity"))
    assert check(make_pod(affinity=apart), a, view) == [ANTI_AFFINITY]
    assert check(make_pod(affinity=together), b, view) == [AFFINITY]


def test_several_affinity_terms_need_one_pod_that_meets_all() -> None:
    a, b = make_node("na", "a"), make_node("nb", "b")
    db = {**SAME_APP, "labelSelector": {"matchLabels": {"tier": "db"}}}
    pod = make_pod(affinity=required("podAffinity", [SAME_APP, db]))
    web, both = make_pod("x", on="na"), make_pod("y", on="nb")
    both["metadata"]["labels"]["tier"] = "db"
    assert check(pod, a, ClusterView(nodes=[a, b], pods=[web])) == [AFFINITY]
    view = ClusterView(nodes=[a, b], pods=[web, both])
    assert check(pod, a, view) == [AFFINITY]
    assert check(pod, b, view) == []


def test_a_node_that_lacks_one_of_the_keys_forms_no_domain_of_the_others() -> None:
    a, b = make_node("na", "a"), make_node("nb", "b")
    del b["metadata"]["labels"]["kubernetes.io/hostname"]
    pod = spread()
    host = {**pod["spec"]["topologySpreadConstraints"][0], "topologyKey": "kubernetes.io/hostname"}
    view = ClusterView(nodes=[a, b], pods=[make_pod("x", on="na")])
    assert check(pod, a, view) == [SPREAD]
    pod["spec"]["topologySpreadConstraints"].append({**host, "maxSkew": 3})
    # Without zone b there is nothing to be more even than.
    assert check(pod, a, view) == []


def test_a_cordoned_node_is_a_domain_unless_its_taint_counts() -> None:
    a, b = make_node("na", "a"), make_node("nb", "b", unschedulable=True)
    b["spec"]["taints"] = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
    view = ClusterView(nodes=[a, b], pods=[make_pod("x", on="na")])
    assert check(spread(), a, view) == [SPREAD]
    assert check(spread(nodeTaintsPolicy="Honor"), a, view) == []
