"""Status, scale, binding, eviction."""

import pytest

from tests.local.kube.client import (
    BUDGETS,
    DEPLOYMENTS,
    PODS,
    Api,
    Json,
    Reply,
    deployment,
    pod,
)


def test_status_and_spec_are_written_through_their_own_paths(api: Api) -> None:
    api.post(DEPLOYMENTS, deployment("web", replicas=2))
    path = f"{DEPLOYMENTS}/web"
    both = {"spec": {"replicas": 9}, "status": {"replicas": 1}}
    written = api.patch(f"{path}/status", both).body
    assert (written["spec"]["replicas"], written["status"]["replicas"]) == (2, 1)
    written = api.patch(path, {"status": {"replicas": 7}}).body
    assert written["status"]["replicas"] == 1
    written["status"] = {"replicas": 7}
    assert api.put(path, written).body["status"]["replicas"] == 1
    assert api.put(f"{path}/status", written).body["status"]["replicas"] == 7


def test_scale_reads_and_writes_the_replicas(api: Api) -> None:
    api.post(DEPLOYMENTS, deployment("web", replicas=2))
    path = f"{DEPLOYMENTS}/web"
    scale = api.get(f"{path}/scale").body
    assert scale["kind"] == "Scale"
    assert scale["status"]["selector"] == "app=web"
    scale["spec"]["replicas"] = 5
    assert api.put(f"{path}/scale", scale).body["spec"]["replicas"] == 5
    assert api.put(f"{path}/scale", scale).status == 409
    assert api.patch(f"{path}/scale", {"spec": {"replicas": 6}}).status == 200
    assert api.patch(f"{path}/scale", {"spec": {"replicas": -1}}).status == 422
    assert api.get(path).body["spec"]["replicas"] == 6


# -- binding ------------------------------------------------------------------------------


def bind(api: Api, name: str, node: str, **metadata: object) -> Reply:
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    body: Json = {"apiVersion": "v1", "kind": "Binding", "target": target}
    return api.post(f"{PODS}/{name}/binding", body | {"metadata": {"name": name, **metadata}})


def test_a_binding_sets_the_node_and_the_condition(api: Api) -> None:
    api.post(PODS, pod("a"))
    reply = bind(api, "a", "n", annotations={"example.com/by": "us"})
    assert (reply.status, reply.body["status"]) == (201, "Success")
    bound = api.get(f"{PODS}/a").body
    assert bound["spec"]["nodeName"] == "n"
    assert bound["metadata"]["annotations"] == {"example.com/by": "us"}
    states = {condition["type"]: condition["status"] for condition in bound["status"]["conditions"]}
    assert states == {"PodScheduled": "True"}


def test_a_second_binding_is_a_conflict_even_to_the_same_node(api: Api) -> None:
    api.post(PODS, pod("a"))
    bind(api, "a", "n")
    for name in ("n", "m"):
        reply = bind(api, "a", name)
        assert (reply.status, reply.body["reason"]) == (409, "Conflict")


def test_a_pod_that_is_going_gated_or_another_one_is_not_bound(api: Api) -> None:
    api.post(PODS, pod("going", finalizers=["example.com/keep"]))
    api.delete(f"{PODS}/going")
    gated = pod("gated")
    gated["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    api.post(PODS, gated)
    api.post(PODS, pod("other"))
    assert bind(api, "going", "n").status == 409
    assert bind(api, "gated", "n").status == 409
    assert bind(api, "other", "n", uid="foreign").status == 409
    assert bind(api, "absent", "n").status == 404
    assert api.patch(f"{PODS}/gated", {"spec": {"schedulingGates": None}}).status == 200
    assert bind(api, "gated", "n").status == 201


def test_the_legacy_binding_path_works_too(api: Api) -> None:
    api.post(PODS, pod("a"))
    body = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}}
    assert api.post("/api/v1/namespaces/default/bindings", body).status == 201
    assert api.get(f"{PODS}/a").body["spec"]["nodeName"] == "n"


# -- eviction -----------------------------------------------------------------------------


def evict(api: Api, name: str, **options: object) -> Reply:
    body: Json = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    return api.post(f"{PODS}/{name}/eviction", body | options)


def running(api: Api, name: str, *, ready: bool = True) -> None:
    api.post(PODS, pod(name, node="n", labels={"app": "x"}))
    state = {"type": "Ready", "status": "True" if ready else "False"}
    api.patch(f"{PODS}/{name}/status", {"status": {"phase": "Running", "conditions": [state]}})


def budget(api: Api, *, allowed: int, name: str = "pdb", **spec: object) -> None:
    selector = {"matchLabels": {"app": "x"}}
    body = {"metadata": {"name": name}, "spec": {"minAvailable": 3, "selector": selector, **spec}}
    assert api.post(BUDGETS, body).status == 201
    status = {"disruptionsAllowed": allowed, "currentHealthy": 3, "desiredHealthy": 3}
    more = {"expectedPods": 3, "observedGeneration": 1}
    api.patch(f"{BUDGETS}/{name}/status", {"status": status | more})


def test_an_eviction_without_a_budget_deletes_with_the_grace_of_the_pod(api: Api) -> None:
    running(api, "a")
    assert evict(api, "a").status == 201
    marked = api.get(f"{PODS}/a").body
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 30
    reasons = {
        condition["type"]: condition.get("reason") for condition in marked["status"]["conditions"]
    }
    assert reasons["DisruptionTarget"] == "EvictionByEvictionAPI"


def test_an_eviction_spends_the_budget_and_is_refused_when_it_is_spent(api: Api) -> None:
    budget(api, allowed=1)
    for name in ("a", "b"):
        running(api, name)
    assert evict(api, "a").status == 201
    status = api.get(f"{BUDGETS}/pdb").body["status"]
    assert status["disruptionsAllowed"] == 0
    assert list(status["disruptedPods"]) == ["a"]
    refused = evict(api, "b")
    assert (refused.status, refused.body["reason"]) == (429, "TooManyRequests")
    assert [cause["reason"] for cause in refused.causes] == ["DisruptionBudget"]
    assert "needs 3 healthy pods and has 3 currently" in refused.causes[0]["message"]
    assert "retry-after" not in refused.headers
    assert "deletionTimestamp" not in api.get(f"{PODS}/b").body["metadata"]


def test_a_budget_not_yet_seen_by_its_controller_refuses(api: Api) -> None:
    running(api, "a")
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
    api.post(BUDGETS, {"metadata": {"name": "pdb"}, "spec": spec})
    assert evict(api, "a").status == 429


def test_two_budgets_for_one_pod_are_an_error_of_the_server(api: Api) -> None:
    budget(api, allowed=1)
    budget(api, allowed=1, name="second")
    running(api, "a")
    assert evict(api, "a").status == 500


@pytest.mark.parametrize(("policy", "status"), [("AlwaysAllow", 201), ("IfHealthyBudget", 201)])
def test_unready_pod_may_be_evicted_while_the_budget_is_healthy(
    api: Api, policy: str, status: int
) -> None:
    budget(api, allowed=0, unhealthyPodEvictionPolicy=policy)
    running(api, "a", ready=False)
    assert evict(api, "a").status == status
    assert api.get(f"{BUDGETS}/pdb").body["status"]["disruptionsAllowed"] == 0


def test_pending_pods_are_evicted_whatever_the_budget_says(api: Api) -> None:
    budget(api, allowed=0)
    api.post(PODS, pod("a", labels={"app": "x"}))
    assert evict(api, "a").status == 201
    assert api.get(f"{PODS}/a").status == 404


def test_an_eviction_honours_its_delete_options(api: Api) -> None:
    running(api, "a")
    assert evict(api, "a", deleteOptions={"preconditions": {"uid": "other"}}).status == 409
    assert evict(api, "a", deleteOptions={"gracePeriodSeconds": 0}).status == 201
    assert api.get(f"{PODS}/a").status == 404
    assert evict(api, "a").status == 404
