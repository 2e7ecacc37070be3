"""ResourceQuotas."""

from typing import Any

import pytest

from functions.cli.plan.reading.quotas import ResourceQuotas


def quota(name: str = "q", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"namespace": "m", "name": name}, "spec": spec}


def spec(requests: Any = None, limits: Any = None, **more: Any) -> dict[str, Any]:
    resources = {"requests": requests or {}, "limits": limits or {}}
    return {"containers": [{"name": "c", "resources": resources}], **more}


ONE = {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"}


@pytest.mark.parametrize(
    ("hard", "asked", "allowed"),
    [
        ({"pods": "2"}, spec(), 2),
        ({"count/pods": "2"}, spec(), 2),
        ({"cpu": "2"}, spec(ONE), 2),
        ({"requests.cpu": "2500m"}, spec(ONE), 2),
        ({"memory": "3Gi"}, spec(ONE), 3),
        ({"requests.ephemeral-storage": "1Gi"}, spec(ONE), 1),
        ({"limits.cpu": "3"}, spec(ONE, ONE), 3),
        ({"limits.memory": "2Gi", "pods": "9"}, spec(ONE, ONE), 2),
        ({"limits.cpu": "3"}, spec(ONE, ONE, overhead={"cpu": "500m"}), 2),
        ({"requests.cpu": "3"}, spec(ONE, overhead={"cpu": "500m"}), 2),
        (
            {"requests.nvidia.com/gpu": "2", "limits.nvidia.com/gpu": "0"},
            spec({"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "1"}),
            2,
        ),
        ({"requests.hugepages-2Mi": "4Mi"}, spec({"hugepages-2Mi": "2Mi"}), 2),
        ({"hugepages-2Mi": "2Mi"}, spec({"hugepages-2Mi": "2Mi"}), 1),
        ({"nvidia.com/gpu": "0", "services": "0", "cpu": "x"}, spec(ONE), 5),
        ({"requests.cpu": "0"}, spec({"cpu": "0"}), 5),
    ],
    ids=[
        *("pods", "objects", "cpu", "requests.cpu", "memory", "disk", "limits", "the least of two"),
        *("limits with overhead", "requests with overhead", "devices", "huge pages"),
        *("huge pages by their name", "what pods do not take", "nothing of nothing"),
    ],
)
def test_pods_are_created_until_a_quota_is_used_up(
    hard: dict[str, str], asked: dict[str, Any], allowed: int
) -> None:
    quotas = ResourceQuotas([quota(hard=hard)])
    assert sum(not quotas.refusal("m", asked) for _ in range(5)) == allowed
    assert quotas.refusal("other", asked) == ""


def test_a_refusal_says_what_is_taken() -> None:
    quotas = ResourceQuotas(
        [quota("b", hard={"pods": "9"}), quota("a", hard={"requests.memory": "3Gi"})]
    )
    quotas.count("m", spec({"memory": "2Gi"}), ended=False)
    told = quotas.refusal("m", spec({"memory": "1536Mi"}))
    assert told == (
        "ResourceQuota m/a: requests.memory: 2Gi of 3Gi are taken, the pod takes 1536Mi"
    )
    assert quotas.refusal("m", spec({"memory": "1Gi"})) == ""


def test_a_pod_that_has_ended_is_only_an_object() -> None:
    quotas = ResourceQuotas([quota(hard={"count/pods": "2", "pods": "1"})])
    quotas.count("m", spec(), ended=True)
    assert quotas.refusal("m", spec()) == ""
    assert "count/pods: 2 of 2" in quotas.refusal("m", spec())


@pytest.mark.parametrize(
    ("hard", "asked", "missing"),
    [
        ({"cpu": "9"}, spec(), "container c must say its cpu"),
        ({"limits.memory": "9Gi"}, spec(ONE), "container c must say its limits.memory"),
        ({"requests.memory": "9Gi"}, spec({"cpu": "1"}), "must say its requests.memory"),
        ({"cpu": "9"}, spec(ONE, initContainers=[{}]), "container without a name must say its cpu"),
        ({"cpu": "9"}, spec(resources={"requests": {"cpu": "1"}}), ""),
        ({"requests.ephemeral-storage": "9Gi"}, spec(), ""),
        ({"cpu": "9"}, spec(ONE), ""),
    ],
    ids=["cpu", "limits", "one of two", "init container", "the pod says it", "disk", "all say it"],
)
def test_each_container_says_what_a_quota_limits(
    hard: dict[str, str], asked: dict[str, Any], missing: str
) -> None:
    found = ResourceQuotas([quota(hard=hard)]).refusal("m", asked)
    assert found.endswith(missing)
    assert bool(found) == bool(missing)


def near(kind: str, **term: Any) -> dict[str, Any]:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"affinity": {kind: {required: [term]}}}


PREFERRED = {
    "affinity": {
        "podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": {"namespaces": ["a"]}}
            ]
        }
    }
}


@pytest.mark.parametrize(
    ("scope", "inside", "outside"),
    [
        ("Terminating", spec(activeDeadlineSeconds=5), spec()),
        ("NotTerminating", spec(), spec(activeDeadlineSeconds=0)),
        ("BestEffort", spec({"cpu": "0"}), spec(ONE)),
        ("NotBestEffort", spec(None, ONE), spec({"nvidia.com/gpu": "1"})),
        ("NotBestEffort", spec(resources={"requests": ONE}), spec()),
        ("PriorityClass", spec(priorityClassName="high"), spec()),
        ("CrossNamespacePodAffinity", spec(**near("podAffinity", namespaces=["a"])), spec()),
        ("CrossNamespacePodAffinity", spec(**PREFERRED), spec(**near("podAntiAffinity"))),
        (
            "CrossNamespacePodAffinity",
            spec(**near("podAntiAffinity", namespaceSelector={})),
            spec(**near("podAffinity", namespaces=[])),
        ),
    ],
)
def test_a_quota_counts_the_pods_of_its_scope(scope: str, inside: Any, outside: Any) -> None:
    quotas = ResourceQuotas([quota(hard={"pods": "0"}, scopes=[scope])])
    assert quotas.refusal("m", inside)
    assert not quotas.refusal("m", outside)


@pytest.mark.parametrize(
    ("expression", "counted"),
    [
        ({"operator": "In", "values": ["high"]}, {"high"}),
        ({"operator": "NotIn", "values": ["high"]}, {"low", ""}),
        ({"operator": "Exists"}, {"high", "low"}),
        ({"operator": "DoesNotExist"}, {""}),
    ],
    ids=lambda value: value["operator"] if isinstance(value, dict) else "",
)
def test_a_quota_counts_the_pods_of_its_priority_classes(
    expression: dict[str, Any], counted: set[str]
) -> None:
    expressions = [{"scopeName": "PriorityClass", **expression}]
    selector = {"matchExpressions": expressions}
    quotas = ResourceQuotas([quota(hard={"pods": "0"}, scopeSelector=selector)])
    found = {
        name for name in ("high", "low", "") if quotas.refusal("m", spec(priorityClassName=name))
    }
    assert found == counted


def claim(size: str = "1Gi", **claimed: Any) -> dict[str, Any]:
    return {"spec": {"resources": {"requests": {"storage": size}}, **claimed}}


OF_GOLD = "gold.storageclass.storage.k8s.io/"


@pytest.mark.parametrize(
    ("hard", "asked", "allowed"),
    [
        ({"requests.storage": "2560Mi"}, claim(), 2),
        ({"persistentvolumeclaims": "3"}, claim(), 3),
        ({"count/persistentvolumeclaims": "3"}, claim("0"), 3),
        ({f"{OF_GOLD}requests.storage": "2Gi"}, claim(storageClassName="gold"), 2),
        ({f"{OF_GOLD}persistentvolumeclaims": "1"}, claim(storageClassName="gold"), 1),
        ({f"{OF_GOLD}requests.storage": "0"}, claim(storageClassName="iron"), 5),
        ({"requests.storage": "0", "pods": "0"}, claim("much"), 5),
    ],
    ids=["storage", "claims", "objects", "of a class", "claims of a class", "another", "no amount"],
)
def test_claims_are_created_until_a_quota_is_used_up(
    hard: dict[str, str], asked: dict[str, Any], allowed: int
) -> None:
    quotas = ResourceQuotas([quota(hard=hard)])
    assert sum(not quotas.claim_refusal("m", asked) for _ in range(5)) == allowed
    assert quotas.claim_refusal("other", asked) == ""


def test_claims_that_are_there_are_counted_and_scopes_are_about_pods() -> None:
    scoped = quota("a", hard={"requests.storage": "0"}, scopes=["BestEffort"])
    quotas = ResourceQuotas([scoped, quota("b", hard={f"{OF_GOLD}requests.storage": "2Gi"})])
    quotas.count_claim("m", claim("1536Mi", storageClassName="gold"))
    told = f"ResourceQuota m/b: {OF_GOLD}requests.storage: 1536Mi of 2Gi are taken, the claim takes"
    assert quotas.claim_refusal("m", claim(storageClassName="gold")) == f"{told} 1Gi"
