"""Fields of NodePools: what is taken, and what is refused with the field and a remedy."""

from datetime import timedelta
from typing import Any

import pytest

from shared.model import labels as keys
from shared.planning.rules.provisioner_offerings import node_labels
from tests.karpenter_cases.v1.reading import (
    DISRUPTION,
    NODE,
    TAINT,
    asks,
    budgeted,
    disrupts,
    each_is_refused,
    pool_faults,
    pool_of,
)
from tests.unit.manifests.documents import CLASS_REF, wants

HALF = timedelta(seconds=30)
LONGER = timedelta(minutes=90)
SPANS = {"30s": HALF, "1h30m": LONGER, "Never": None}
WRONG_SPANS = ("-1s", "1d", "1h Never")
POLICIES = ("WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced")
NIGHT = {"nodes": "1", "schedule": "0 1 * * *", "duration": "8h"}
HAS_A = "Exists"


def test_a_life_is_a_span_or_never() -> None:
    assert {text: pool_of({"expireAfter": text}).ttl_until_expired for text in SPANS} == SPANS


def test_a_life_that_is_no_span_is_refused() -> None:
    found = {text: pool_faults({"expireAfter": text}) for text in WRONG_SPANS}
    each_is_refused(found, f"{NODE}.expireAfter", "write a span in h, m and s")


def test_a_wait_is_written_like_a_life() -> None:
    assert [disrupts(consolidateAfter=text) for text in SPANS] == [[], [], []]
    found = {text: disrupts(consolidateAfter=text) for text in WRONG_SPANS}
    each_is_refused(found, f"{DISRUPTION}.consolidateAfter", "write a span in h, m and s")


def test_a_wait_goes_with_each_policy() -> None:
    for policy in POLICIES[:2]:
        found = [
            pool_of(disruption={"consolidationPolicy": policy, "consolidateAfter": text})
            for text in ("1m", "Never")
        ]
        removes = [owner.consolidation or owner.ttl_after_empty is not None for owner in found]
        assert removes == [True, False]


def test_a_disruption_block_needs_no_wait() -> None:
    owner = pool_of(disruption={"consolidationPolicy": "WhenEmpty"})
    assert owner.ttl_after_empty == timedelta(0)


def test_a_pool_is_disrupted_as_v1_says_where_it_says_nothing() -> None:
    said = {
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
        "consolidateAfter": "0s",
        "budgets": [{"nodes": "10%"}],
    }
    assert pool_of() == pool_of(disruption=said)
    assert pool_of().consolidation


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_of_v1_is_taken(policy: str) -> None:
    assert disrupts(consolidationPolicy=policy) == []


def test_another_policy_is_refused() -> None:
    found = {word: disrupts(consolidationPolicy=word) for word in ("WhenUnderutilized", "balanced")}
    found[""] = disrupts(consolidationPolicy="")
    each_is_refused(found, f"{DISRUPTION}.consolidationPolicy", "use one of WhenEmpty, ")


def test_a_schedule_has_five_fields() -> None:
    found = {text: budgeted({**NIGHT, "schedule": text}) for text in ("every noon", "* * * *")}
    each_is_refused(found, f"{DISRUPTION}.budgets[0].schedule", "write five fields of cron")


def test_a_budgets_duration_is_hours_and_minutes() -> None:
    found = {text: budgeted({**NIGHT, "duration": text}) for text in ("-1h", "30s")}
    each_is_refused(found, f"{DISRUPTION}.budgets[0].duration", "write hours and minutes")


def test_a_budget_is_a_number_or_a_share() -> None:
    found = {text: budgeted({"nodes": text}) for text in ("-1", "-1%", "1000%")}
    each_is_refused(found, f"{DISRUPTION}.budgets[0].nodes", "write a number of nodes, or a share")


def test_a_schedule_and_a_duration_need_each_other() -> None:
    alone = {name: budgeted({"nodes": "1", name: NIGHT[name]}) for name in NIGHT if name != "nodes"}
    each_is_refused(
        {"schedule": alone["schedule"]}, f"{DISRUPTION}.budgets[0].schedule", "write duration, too"
    )
    each_is_refused(
        {"duration": alone["duration"]}, f"{DISRUPTION}.budgets[0].duration", "write schedule, too"
    )


@pytest.mark.parametrize(
    "more",
    [NIGHT, {**NIGHT, "duration": "1h30m0s"}, {}, {**NIGHT, "schedule": "@daily"}],
    ids=["both", "minutes", "neither", "named"],
)
def test_a_budget_may_have_a_schedule(more: dict[str, Any]) -> None:
    assert budgeted({"nodes": "1", **more}) == []


def test_a_wrong_budget_is_refused_behind_a_right_one() -> None:
    found = {"second": budgeted({"nodes": "1"}, {"nodes": "-1"})}
    each_is_refused(found, f"{DISRUPTION}.budgets[1].nodes", "write a number of nodes")


@pytest.mark.parametrize(
    "reasons", [["Drifted"], ["Underutilized"], ["Empty"], ["Drifted", "Empty"]], ids="-".join
)
def test_a_budget_may_name_reasons(reasons: list[str]) -> None:
    assert budgeted({"nodes": "1", "reasons": reasons}) == []


def test_another_reason_is_refused() -> None:
    found = {word: budgeted({"reasons": [word]}) for word in ("Expired", "", "Whim")}
    each_is_refused(found, f"{DISRUPTION}.budgets[0].reasons[0]", "use one of Underutilized, ")


def test_taints_may_share_a_key_with_other_effects() -> None:
    pair = [TAINT, {**TAINT, "effect": "NoExecute"}]
    owner = pool_of({"taints": pair, "startupTaints": [{"key": "cni", "effect": "NoSchedule"}]})
    assert [str(taint.effect) for taint in owner.taints] == ["NoSchedule", "NoExecute"]
    assert [taint.key for taint in owner.startup_taints] == ["cni"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"key": None}, "key"),
        ({"key": "a key"}, "key"),
        ({"value": "???"}, "value"),
        ({"effect": "Never"}, "effect"),
    ],
    ids=["no-key", "key", "value", "effect"],
)
def test_a_taint_with_a_wrong_part_is_refused(change: dict[str, Any], field: str) -> None:
    wrong = {name: part for name, part in {**TAINT, **change}.items() if part is not None}
    for name in ("taints", "startupTaints"):
        each_is_refused({name: pool_faults({name: [wrong]})}, f"{NODE}.{name}[0].{field}", "")


def test_a_key_has_a_length() -> None:
    key = "k" * 317
    taint = {"taint": pool_faults({"taints": [{**TAINT, "key": key}]})}
    each_is_refused(taint, f"{NODE}.taints[0].key", "write a key")
    label = {"label": pool_faults({}, {"labels": {key: "x"}})}
    each_is_refused(label, f"spec.template.metadata.labels.{key}", "write a key")
    each_is_refused(
        {"asked": asks(wants(key, HAS_A))}, f"{NODE}.requirements[0].key", "write a key"
    )


def test_eight_operators_are_taken() -> None:
    lists = [wants(f"a{n}", operator, "x") for n, operator in enumerate(("In", "NotIn"))]
    plain = [wants(f"b{n}", operator) for n, operator in enumerate((HAS_A, "DoesNotExist"))]
    bounds = [wants(word, word, "5") for word in ("Gt", "Lt", "Gte", "Lte")]
    assert asks(*lists, *plain, *bounds) == []
    each_is_refused(
        {"Is": asks(wants("a", "Is", "x"))},
        f"{NODE}.requirements[0].operator",
        "use one of In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte",
    )


@pytest.mark.parametrize("key", [keys.NODE_POOL, keys.HOSTNAME, "karpenter.sh/x"])
def test_a_key_of_the_autoscaler_is_refused(key: str) -> None:
    each_is_refused(
        {key: pool_faults({}, {"labels": {key: "x"}})},
        f"spec.template.metadata.labels.{key}",
        "use one of your own domain",
    )
    each_is_refused(
        {key: asks(wants(key, "In", "x"))},
        f"{NODE}.requirements[0].key",
        "use one of your own domain",
    )


@pytest.mark.parametrize(
    "key", ["kubernetes.io/a", "k8s.io/a", "sub.kubernetes.io/a", "x.k8s.io/a"]
)
def test_a_key_of_kubernetes_is_taken(key: str) -> None:
    assert asks(wants(key, "In", "x")) == []
    assert pool_of({}, {"labels": {key: "x"}}).labels[key] == "x"


def test_facts_of_machines_may_be_asked_for() -> None:
    facts = [wants(key, HAS_A) for key in (keys.CAPACITY_TYPE, keys.INSTANCE_CPU)]
    assert asks(*facts, wants(keys.INSTANCE_FAMILY, "In", "m5")) == []
    pods = {keys.INSTANCE_PODS: asks(wants(keys.INSTANCE_PODS, HAS_A))}
    each_is_refused(pods, f"{NODE}.requirements[0].key", "use one of your own domain")


def test_no_requirement_is_needed() -> None:
    assert pool_faults({"requirements": []}) == []


def test_in_needs_a_value() -> None:
    each_is_refused(
        {"none": asks(wants("a", "In"))}, f"{NODE}.requirements[0].values", "at least one value"
    )


@pytest.mark.parametrize("operator", ["Gt", "Lt", "Gte", "Lte"])
def test_a_bound_is_one_whole_number(operator: str) -> None:
    for values in ((), ("1", "2"), ("x",), ("-1",)):
        found = asks(wants("a", operator, *values))
        assert len(found) == 1
        assert found[0].startswith(f"{NODE}.requirements[0].values"), (values, found)


def test_a_least_number_is_from_1_to_50() -> None:
    found = {str(n): asks({**wants("a", HAS_A), "minValues": n}) for n in (0, -1, 51)}
    each_is_refused(found, f"{NODE}.requirements[0].minValues", "a whole number from 1 to 50")
    assert asks({**wants("a", HAS_A), "minValues": 50}) == []


def test_a_least_number_is_within_the_values() -> None:
    found = {"3 of 2": asks({**wants("a", "In", "x", "y"), "minValues": 3})}
    each_is_refused(found, f"{NODE}.requirements[0].minValues", "write at most 2")


def test_many_values_need_no_least_number() -> None:
    assert asks(wants("a", "In", *(str(number) for number in range(60)))) == []


def test_sets_that_share_a_value_are_taken() -> None:
    owner = pool_of({"requirements": [wants("a", "In", "x", "y"), wants("a", "In", "y", "z")]})
    assert node_labels(owner)["a"] == "y"


def test_there_are_at_most_a_hundred_requirements() -> None:
    found = {"101": asks(*(wants(f"a{number}", HAS_A) for number in range(101)))}
    each_is_refused(found, f"{NODE}.requirements", "write at most 100 entries")


@pytest.mark.parametrize("value", ["b c", "x" * 64], ids=["form", "length"])
def test_a_label_has_a_value_of_labels(value: str) -> None:
    found = {value: pool_faults({}, {"labels": {"a": value}})}
    each_is_refused(found, "spec.template.metadata.labels.a", "write at most 63 letters")


def test_a_grace_period_has_an_end() -> None:
    for text in ("30s", "1h30m"):
        assert pool_faults({"terminationGracePeriod": text}) == []
    found = {text: pool_faults({"terminationGracePeriod": text}) for text in ("Never", "-1s")}
    each_is_refused(found, f"{NODE}.terminationGracePeriod", "write a span")


@pytest.mark.parametrize("part", ["group", "kind", "name"])
@pytest.mark.parametrize("written", ["absent", "empty"])
def test_a_class_is_named_in_full(part: str, written: str) -> None:
    ref = {name: value for name, value in CLASS_REF.items() if name != part}
    found = pool_faults({"nodeClassRef": {**ref, **({part: ""} if written == "empty" else {})}})
    each_is_refused({part: found}, f"{NODE}.nodeClassRef.{part}", "")


@pytest.mark.parametrize(
    "more",
    [{"weight": 1}, {"limits": {"cpu": 1}}, {"limits": {"memory": "1Gi"}}, {"limits": {"pods": 1}}],
    ids=["weight", "cpu", "memory", "pods"],
)
def test_a_fixed_number_beside_what_is_not_fixed_is_refused(more: dict[str, Any]) -> None:
    found = {"replicas": pool_faults(replicas=5, **more)}
    each_is_refused(found, "spec.replicas", "a Deployment of placeholder pods")


def test_of_capacity_types_the_known_ones_count() -> None:
    alone = {word: asks(wants(keys.CAPACITY_TYPE, "In", word)) for word in ("bad", "reserved")}
    each_is_refused(alone, f"{NODE}.requirements", "allow at least one of on-demand, spot")
    assert asks(wants(keys.CAPACITY_TYPE, "In", "bad", "spot")) == []


def test_of_tenancies_the_default_counts() -> None:
    tenancy = "karpenter.k8s.aws/instance-tenancy"
    alone = {"bad": asks(wants(tenancy, "In", "bad"))}
    each_is_refused(alone, f"{NODE}.requirements", "allow at least one of default")
    assert asks(wants(tenancy, "In", "default")) == []
    assert asks(wants(tenancy, "In", "bad", "default")) == []
    for requirements in ([wants(tenancy, "In", "bad", "default")], []):
        assert node_labels(pool_of({"requirements": requirements}))[tenancy] == "default"
