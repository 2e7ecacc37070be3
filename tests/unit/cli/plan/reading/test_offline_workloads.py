"""Pods of workloads as their controllers make them and the API server admits them."""

from typing import Any

import pytest

from functions.cli.plan.reading.documents import Document, InvalidDocumentError
from functions.cli.plan.reading.workloads import PodReader
from shared.model.kubernetes.pods import Pod
from shared.model.resources import Resources
from tests.unit.cli.plan.reading.test_offline import owned, workload
from tests.unit.cli.running import container, deployment, pod, read

INDEX = "batch.kubernetes.io/job-completion-index"
HASH = "pod-template-hash"


def pods(*raws: Any) -> list[Pod]:
    return list(read(*raws).snapshot.pending)


def limit_range(**item: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "usual"},
        "spec": {"limits": [{"type": "Container", **item}]},
    }


def quota(**hard: str) -> dict[str, Any]:
    metadata = {"name": "q"}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": metadata,
        "spec": {"hard": hard},
    }


def silent(raw: dict[str, Any]) -> dict[str, Any]:
    """Return a workload whose container says no requests."""
    raw["spec"]["template"]["spec"]["containers"] = [{"name": "c"}]
    return raw


def test_pods_get_the_requests_of_their_namespace() -> None:
    usual = limit_range(defaultRequest={"cpu": "500m"}, default={"cpu": "1"})
    (found,) = pods(usual, silent(deployment(replicas=1)))
    assert found.scheduling.requests == Resources.of(cpu=500, pods=1)
    (bare,) = pods(usual, pod("bare", containers=[{"name": "c"}]))
    assert bare.scheduling.requests == Resources.of(cpu=500, pods=1)


def test_pods_that_an_api_server_has_stored_are_as_they_are() -> None:
    stored: dict[str, Any] = pod("stored", containers=[{"name": "c"}])
    stored["metadata"]["uid"] = "u"
    (found,) = pods(limit_range(defaultRequest={"cpu": "500m"}), stored)
    assert found.scheduling.requests == Resources.of(pods=1)


def test_daemons_get_the_requests_of_their_namespace_and_those_refused_are_left_out() -> None:
    usual = limit_range(defaultRequest={"cpu": "500m"}, max={"cpu": "1"})
    large = workload("DaemonSet", "large")
    large["spec"]["template"]["spec"]["containers"] = [
        {"name": "c", "resources": {"limits": {"cpu": "2"}}}
    ]
    offline = read(usual, silent(workload("DaemonSet", "agent")), large)
    (agent,) = offline.snapshot.daemonsets
    assert agent.scheduling.requests == Resources.of(cpu=500, pods=1)
    assert (
        "DaemonSet default/large makes no pods, left out: LimitRange default/usual: container c: "
        "cpu: request 2; it must be at most 1"
    ) in offline.notes


def test_no_node_is_bought_for_pods_that_would_be_refused() -> None:
    large: Any = deployment(replicas=2)
    large["spec"]["template"]["spec"]["containers"] = [container(cpu="2")]
    for found in pods(limit_range(max={"cpu": "1"}), large):
        (reason,) = found.scheduling.refusals
        told = "LimitRange default/usual: container main: cpu: request 2; it must be at most 1"
        assert reason == f"it would not be created: {told}"


def test_pods_beyond_a_quota_would_not_be_created() -> None:
    standing = owned(pod("web-0", nodeName="n1"), "ReplicaSet", "web-1")
    ended: Any = {**pod("old"), "status": {"phase": "Failed"}}
    ended["metadata"]["uid"] = "u"
    found = pods(quota(**{"pods": "3", "count/pods": "9"}), ended, standing, deployment(replicas=4))
    assert [bool(other.scheduling.refusals) for other in found] == [False, False, True, True]
    assert found[2].scheduling.refusals == (
        "it would not be created: ResourceQuota default/q: pods: 3 of 3 are taken, the pod takes 1",
    )


def test_a_pod_that_has_a_node_is_refused_by_nothing() -> None:
    snapshot = read(
        quota(pods="0"), limit_range(max={"cpu": "1m"}), pod("a", nodeName="n")
    ).snapshot
    assert [found.scheduling.refusals for found in snapshot.bound] == [()]


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        (limit_range(max={"cpu": "GiB"}), r"spec\.limits\[0\]\.max\.cpu"),
        (limit_range(default="2"), r"spec\.limits\[0\]\.default"),
        (quota(pods="-1"), r"spec\.hard\.pods"),
        ({**quota(), "spec": {}}, ""),
    ],
    ids=["limit", "no amounts", "quota", "a quota of nothing"],
)
def test_a_wrong_amount_is_named(raw: dict[str, Any], field: str) -> None:
    if not field:
        assert pods(raw, deployment(replicas=1))
        return
    with pytest.raises(InvalidDocumentError, match=field):
        read(raw)


def labels(*raws: Any) -> list[dict[str, str]]:
    return [dict(found.labels) for found in pods(*raws)]


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ([{"maxSkew": None}], r"\[0\].maxSkew: write a whole number of 1"),
        ([{"maxSkew": 0}], r"\[0\].maxSkew: 0: write a whole number of 1"),
        ([{"minDomains": 0}], r"\[0\].minDomains: 0: write a whole number of 1"),
        ([{"topologyKey": ""}], r"\[0\].topologyKey: .*label of nodes"),
        (
            [{"whenUnsatisfiable": None}],
            r"\[0\].whenUnsatisfiable: write one of DoNotSchedule, Sched",
        ),
        ([{"whenUnsatisfiable": "Maybe"}], r"\[0\].whenUnsatisfiable: Maybe: write one of"),
        ([{}, {"maxSkew": 2}], r"\[1\].topologyKey: zone: another constraint has this key, too"),
    ],
    ids=["no skew", "skew", "domains", "key", "no policy", "policy", "one pair twice"],
)
def test_a_spread_that_the_api_server_refuses_is_named(
    more: list[dict[str, Any]], field: str
) -> None:
    rule = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    raw = deployment(topologySpreadConstraints=[{**rule, **changes} for changes in more])
    with pytest.raises(InvalidDocumentError, match=rf"topologySpreadConstraints{field}"):
        read(raw)


def test_pods_of_a_deployment_share_a_hash_of_their_own() -> None:
    first, second = labels(deployment(replicas=2))
    assert first == second
    assert set(first) == {"app", HASH}
    (other,) = labels(workload("Deployment", "other", replicas=1))
    assert other[HASH] != first[HASH]


def standing(name: str, made: int, template_hash: str) -> dict[str, Any]:
    found: Any = owned(pod(name, nodeName="n1"), "ReplicaSet", f"web-{template_hash}")
    when = {"creationTimestamp": f"2026-01-0{made}T00:00:00Z"}
    return {**found, "metadata": {**found["metadata"], "labels": {HASH: template_hash}, **when}}


def replica_set(template_hash: str, revision: str, owner: str = "web") -> dict[str, Any]:
    found = owned(
        workload("ReplicaSet", f"{owner}-{template_hash}", replicas=0), "Deployment", owner
    )
    metadata = {
        "labels": {HASH: template_hash},
        "annotations": {"deployment.kubernetes.io/revision": revision},
    }
    return {**found, "metadata": {**found["metadata"], **metadata}}


def revised(replicas: int, revision: str) -> dict[str, Any]:
    found: Any = deployment(replicas=replicas)
    annotations = {"deployment.kubernetes.io/revision": revision}
    return {**found, "metadata": {**found["metadata"], "annotations": annotations}}


@pytest.mark.parametrize(
    ("others", "template_hash"),
    [
        ([standing("web-1", 2, "new"), standing("web-2", 1, "old")], "new"),
        ([replica_set("old", "1"), replica_set("new", "2"), replica_set("x", "2", "other")], "new"),
        ([replica_set("old", "1"), standing("web-9", 1, "pod")], "pod"),
    ],
    ids=["newest pod", "ReplicaSet of its revision", "no ReplicaSet of its revision"],
)
def test_pods_of_a_deployment_have_the_hash_that_the_cluster_says(
    others: list[Any], template_hash: str
) -> None:
    found = labels(*others, revised(3, "2"))
    assert {entry[HASH] for entry in found} == {template_hash}


def test_pods_of_a_rollout_that_stand_are_its_own() -> None:
    rollout = workload("Rollout", version="argoproj.io/v1alpha1", replicas=2)
    there = owned(pod("w-5d-x", nodeName="n1"), "ReplicaSet", "w-5d")
    there["metadata"]["labels"] = {"rollouts-pod-template-hash": "5d"}
    offline = read(rollout, there, owned(pod("alone", nodeName="n1"), "ReplicaSet", "gone"))
    assert [found.key for found in offline.snapshot.pending] == ["default/w-0"]
    told = "argoproj.io/v1alpha1 is not known; 1 pod is planned as its pod template says"
    assert f"Rollout default/w: {told}" in offline.notes


def test_pods_of_stateful_sets_have_numbers_and_claims_of_their_own() -> None:
    raw = workload("StatefulSet", replicas=2, ordinals={"start": 5})
    raw["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": {}}]
    raw["spec"]["template"]["spec"]["volumes"] = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "hidden"}},
        {"name": "more", "persistentVolumeClaim": {"claimName": "seen"}},
    ]
    found = PodReader([Document(where="a", raw=raw)]).read()
    assert [other.scheduling.claims for other in found] == [
        ("data-w-5", "seen"),
        ("data-w-6", "seen"),
    ]
    assert [other.labels["apps.kubernetes.io/pod-index"] for other in found] == ["5", "6"]


def test_pods_of_an_indexed_job_have_an_index_each() -> None:
    spec: Any = {"parallelism": 2, "completions": 5, "completionMode": "Indexed"}
    raw = workload("Job", version="batch/v1", **spec)
    raw["status"] = {"succeeded": 2, "completedIndexes": "0,2"}
    assert [entry[INDEX] for entry in labels(raw)] == ["1", "3"]


def cron_job(**spec: Any) -> dict[str, Any]:
    job = workload("Job", version="batch/v1", parallelism=2)["spec"]
    metadata = {"name": "w"}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": metadata,
        "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": job}, **spec},
    }


def test_one_run_of_a_cron_job_is_planned_and_said() -> None:
    offline = read(cron_job())
    assert [found.key for found in offline.snapshot.pending] == ["default/w-0", "default/w-1"]
    assert offline.snapshot.pending[0].labels["job-name"] == "w"
    assert "CronJob default/w: one run is planned, 2 pods at once" in offline.notes
    assert (
        "CronJob default/w: is suspended: no run is planned" in read(cron_job(suspend=True)).notes
    )


@pytest.mark.parametrize(
    "run",
    [
        owned(workload("Job", "w-29", "batch/v1", suspend=True), "CronJob", "w"),
        owned(pod("w-29-x", nodeName="n1"), "Job", "w-29"),
    ],
    ids=["a Job", "a pod of a Job"],
)
def test_a_cron_job_whose_run_is_there_asks_for_no_other(run: dict[str, Any]) -> None:
    assert pods(cron_job(), run) == []


def test_a_replication_controller_is_planned() -> None:
    found = pods(workload("ReplicationController", version="v1", replicas=2))
    assert [other.key for other in found] == ["default/w-0", "default/w-1"]


def test_a_kind_of_the_same_name_is_planned_by_its_template() -> None:
    foreign = workload("StatefulSet", version="apps.kruise.io/v1beta1", replicas=1)
    assert labels(foreign) == [{"app": "w"}]


def test_daemons_of_new_nodes_ask_for_what_those_that_stand_ask_for() -> None:
    there = owned(pod("agent-x", nodeName="n1"), "DaemonSet", "agent")
    there["metadata"]["labels"] = {"pod-template-generation": "3"}
    agent = silent(workload("DaemonSet", "agent"))
    agent["metadata"]["annotations"] = {"deprecated.daemonset.template.generation": "3"}
    (found,) = read(agent, there).snapshot.daemonsets
    assert found.scheduling.requests == Resources.of(cpu=1000, memory=2**30, pods=1)


def ending(raw: dict[str, Any]) -> dict[str, Any]:
    return {**raw, "metadata": {**raw["metadata"], "deletionTimestamp": "2026-11-28T10:00:00Z"}}


@pytest.mark.parametrize(
    ("kind", "spec", "made"),
    [
        ("ReplicaSet", {}, 1),
        ("StatefulSet", {}, 0),
        ("Job", {}, 1),
        ("Job", {"podReplacementPolicy": "Failed"}, 0),
        ("Job", {"podFailurePolicy": {"rules": []}}, 0),
    ],
    ids=["ReplicaSet", "StatefulSet", "Job", "Job that waits", "Job with a policy"],
)
def test_a_pod_that_is_being_deleted_has_its_successor_where_the_controller_does_not_wait(
    kind: str, spec: dict[str, Any], made: int
) -> None:
    version = "batch/v1" if kind == "Job" else "apps/v1"
    leaving = owned(ending(pod("w-0", nodeName="n1")), kind, "w")
    assert len(pods(leaving, workload(kind, version=version, **spec))) == made


SELECTOR = {"matchLabels": {"app": "w"}}


def labelled(name: str = "w-3", app: str = "w", **spec: Any) -> dict[str, Any]:
    made: dict[str, Any] = pod(name, nodeName="n1", **spec)
    return {**made, "metadata": {**made["metadata"], "labels": {"app": app}}}


@pytest.mark.parametrize(
    ("kind", "selector", "there", "made"),
    [
        ("ReplicaSet", SELECTOR, labelled(), 1),
        ("ReplicaSet", SELECTOR, labelled(app="x"), 2),
        ("ReplicaSet", {}, labelled(), 2),
        ("ReplicaSet", SELECTOR, owned(labelled(), "ReplicaSet", "other"), 2),
        ("ReplicaSet", SELECTOR, ending(labelled()), 2),
        ("ReplicationController", {"app": "w"}, labelled(), 1),
        ("ReplicationController", None, labelled(), 1),
        ("StatefulSet", SELECTOR, labelled("w-1"), 1),
        ("StatefulSet", SELECTOR, labelled("w-a"), 2),
        ("StatefulSet", SELECTOR, labelled("x-1"), 2),
        ("Deployment", SELECTOR, labelled(), 2),
    ],
    ids=[
        *("its own", "other labels", "no selector", "another's", "one that leaves"),
        *("controller", "labels of the template", "number", "no number", "another name"),
        "of no ReplicaSet",
    ],
)
def test_a_pod_without_a_controller_is_counted_by_the_one_that_takes_it_over(
    kind: str, selector: Any, there: dict[str, Any], made: int
) -> None:
    version = "v1" if kind == "ReplicationController" else "apps/v1"
    raw = workload(kind, version=version, replicas=2, selector=selector)
    assert len(pods(there, raw)) == made


def test_a_pod_that_a_replica_set_of_a_deployment_takes_over_counts_for_the_deployment() -> None:
    web = workload("Deployment", replicas=2, selector=SELECTOR)
    old = owned(workload("ReplicaSet", "w-1", replicas=2, selector=SELECTOR), "Deployment", "w")
    assert len(pods(labelled(), old, web)) == 1


def test_a_stateful_set_has_no_pod_whose_claim_a_quota_refuses() -> None:
    raw = workload("StatefulSet", replicas=3)
    spec = {"resources": {"requests": {"storage": "1Gi"}}}
    raw["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": spec}]
    there = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data-w-1"},
        "spec": spec,
    }
    found = pods(quota(**{"requests.storage": "2Gi", "pods": "9"}), there, raw)
    told = "data-w-2: ResourceQuota default/q: requests.storage: 2Gi of 2Gi are taken, the claim"
    refusals = [other.scheduling.refusals for other in found]
    assert refusals == [(), (), (f"it would not be created: claim {told} takes 1Gi",)]
