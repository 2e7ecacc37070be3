"""Delete: grace, finalizers, preconditions, namespaces, dependents."""

from tests.local.kube.client import (
    DEPLOYMENTS,
    MAPS,
    NODES,
    PODS,
    Api,
    config_map,
    deployment,
    node,
    pod,
)


def test_pending_pod_is_deleted_at_once(api: Api) -> None:
    api.post(PODS, pod("a"))
    reply = api.delete(f"{PODS}/a")
    assert (reply.status, reply.body["kind"]) == (200, "Pod")
    assert api.get(f"{PODS}/a").status == 404


def test_a_bound_pod_stays_until_a_delete_with_grace_zero(api: Api) -> None:
    api.post(PODS, pod("a", node="n"))
    api.delete(f"{PODS}/a")
    marked = api.get(f"{PODS}/a").body["metadata"]
    assert marked["deletionGracePeriodSeconds"] == 30
    assert marked["deletionTimestamp"] > marked["creationTimestamp"]
    again = api.delete(f"{PODS}/a").body["metadata"]
    assert again["resourceVersion"] == marked["resourceVersion"]
    api.delete(f"{PODS}/a", {"gracePeriodSeconds": 0})
    assert api.get(f"{PODS}/a").status == 404


def test_a_shorter_grace_replaces_a_longer_one(api: Api) -> None:
    api.post(PODS, pod("a", node="n"))
    api.delete(f"{PODS}/a")
    shorter = api.delete(f"{PODS}/a", gracePeriodSeconds=5).body["metadata"]
    assert shorter["deletionGracePeriodSeconds"] == 5
    longer = api.delete(f"{PODS}/a", gracePeriodSeconds=60).body["metadata"]
    assert longer["deletionGracePeriodSeconds"] == 5


def test_finished_bound_pod_is_deleted_at_once(api: Api) -> None:
    api.post(PODS, pod("a", node="n"))
    api.patch(f"{PODS}/a/status", {"status": {"phase": "Succeeded"}})
    api.delete(f"{PODS}/a")
    assert api.get(f"{PODS}/a").status == 404


def test_a_pod_with_a_finalizer_stays_until_it_is_dropped(api: Api) -> None:
    api.post(PODS, pod("a", finalizers=["example.com/keep"]))
    api.delete(f"{PODS}/a")
    assert api.get(f"{PODS}/a").body["metadata"]["deletionTimestamp"]
    assert api.patch(f"{PODS}/a", {"metadata": {"finalizers": None}}).status == 200
    assert api.get(f"{PODS}/a").status == 404


def test_dropping_the_finalizer_does_not_shorten_the_grace(api: Api) -> None:
    api.post(PODS, pod("a", node="n", finalizers=["example.com/keep"]))
    api.delete(f"{PODS}/a")
    api.patch(f"{PODS}/a", {"metadata": {"finalizers": None}})
    assert api.get(f"{PODS}/a").status == 200


def test_a_node_with_a_finalizer_is_marked_and_takes_no_new_one(api: Api) -> None:
    api.post(NODES, node("n", finalizers=["example.com/keep"]))
    assert api.delete(f"{NODES}/n").body["kind"] == "Node"
    more = {"metadata": {"finalizers": ["example.com/keep", "example.com/more"]}}
    assert api.patch(f"{NODES}/n", more).status == 422
    assert api.patch(f"{NODES}/n", {"spec": {"unschedulable": True}}).status == 200
    api.patch(f"{NODES}/n", {"metadata": {"finalizers": []}})
    assert api.get(f"{NODES}/n").status == 404


def test_a_completed_delete_answers_a_status(api: Api) -> None:
    uid = api.post(MAPS, config_map("m")).body["metadata"]["uid"]
    body = api.delete(f"{MAPS}/m").body
    assert body["status"] == "Success"
    assert body["details"] == {"name": "m", "kind": "configmaps", "uid": uid}


def test_preconditions_that_do_not_hold_are_a_conflict(api: Api) -> None:
    made = api.post(NODES, node("n")).body["metadata"]
    wrong = api.delete(f"{NODES}/n", {"preconditions": {"uid": "other"}})
    assert (wrong.status, wrong.body["reason"]) == (409, "Conflict")
    old = api.delete(f"{NODES}/n", {"preconditions": {"resourceVersion": "1"}})
    assert old.status == 409
    right = {"uid": made["uid"], "resourceVersion": made["resourceVersion"]}
    assert api.delete(f"{NODES}/n", {"preconditions": right}).status == 200


def test_a_dry_run_deletes_nothing(api: Api) -> None:
    api.post(MAPS, config_map("m"))
    assert api.delete(f"{MAPS}/m", dryRun="All").status == 200
    assert api.get(f"{MAPS}/m").status == 200


def test_a_collection_is_deleted_by_selector(api: Api) -> None:
    for name, label in (("a", "1"), ("b", "2"), ("c", "1")):
        api.post(PODS, pod(name, labels={"group": label}))
    assert api.delete(PODS, labelSelector="group=1").status == 200
    assert api.get(PODS).names == ["b"]


def test_a_namespace_takes_everything_in_it_along(api: Api) -> None:
    api.post("/api/v1/namespaces", {"metadata": {"name": "team"}})
    for path, body in (("pods", pod("a")), ("configmaps", config_map("m"))):
        assert api.post(f"/api/v1/namespaces/team/{path}", body).status == 201
    assert api.get("/api/v1/namespaces/team/serviceaccounts").names == ["default"]
    api.delete("/api/v1/namespaces/team")
    assert api.get("/api/v1/namespaces/team").status == 404
    assert api.get("/api/v1/namespaces/team/pods").names == []


def test_a_namespace_waits_for_what_has_a_finalizer_and_takes_nothing_new(api: Api) -> None:
    api.post("/api/v1/namespaces", {"metadata": {"name": "team"}})
    pods = "/api/v1/namespaces/team/pods"
    api.post(pods, pod("a", finalizers=["example.com/keep"]))
    api.delete("/api/v1/namespaces/team")
    assert api.get("/api/v1/namespaces/team").body["status"]["phase"] == "Terminating"
    refused = api.post(pods, pod("b"))
    assert refused.status == 403
    assert [cause["reason"] for cause in refused.causes] == ["NamespaceTerminating"]
    api.patch(f"{pods}/a", {"metadata": {"finalizers": None}})
    assert api.get("/api/v1/namespaces/team").status == 404


def test_orphans_lose_their_owner_and_foreground_is_refused(api: Api) -> None:
    uid = api.post(DEPLOYMENTS, deployment("web")).body["metadata"]["uid"]
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": uid}
    api.post(PODS, pod("a", ownerReferences=[owner]))
    assert api.delete(f"{DEPLOYMENTS}/web", {"propagationPolicy": "Foreground"}).status == 400
    api.delete(f"{DEPLOYMENTS}/web", {"propagationPolicy": "Orphan"})
    assert not api.get(f"{PODS}/a").body["metadata"].get("ownerReferences")


def test_the_default_namespace_cannot_be_deleted(api: Api) -> None:
    assert api.delete("/api/v1/namespaces/default").status == 403
