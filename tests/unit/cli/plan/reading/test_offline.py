from collections.abc import Mapping
from typing import Any

import pytest

from functions.cli.plan.reading.documents import InvalidDocumentError
from shared.model import labels as keys
from shared.planning.decide import decide
from tests import builders as make
from tests.unit.cli.running import CATALOG, PROVISIONER, container, deployment, node, pod, read


def waiting(*raws: Mapping[str, object]) -> list[str]:
    return [
        other_pod.key for other_pod in read(*raws).snapshot.pending if other_pod.is_provisionable
    ]


def workload(
    kind: str, name: str = "w", version: str = "apps/v1", **spec: object
) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container()]}}
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"template": template, **spec},
    }


def owned(raw: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
    reference = {"kind": kind, "name": name, "controller": True, "uid": "u", "apiVersion": "x"}
    return {**raw, "metadata": {**raw["metadata"], "ownerReferences": [reference]}}


def test_replicas_are_named_and_wait() -> None:
    assert waiting(deployment(replicas=3)) == [f"default/web-{n}" for n in range(3)]
    assert waiting(workload("ReplicaSet")) == ["default/w-0"]
    assert waiting(workload("StatefulSet", replicas=2)) == ["default/w-0", "default/w-1"]


@pytest.mark.parametrize(
    ("spec", "status", "count"),
    [
        ({}, {}, 1),
        ({"parallelism": 5}, {}, 5),
        ({"parallelism": 5, "completions": 3}, {}, 3),
        ({"parallelism": 5, "completions": 6}, {"succeeded": 4}, 2),
        ({"completions": 1}, {"succeeded": 4}, 0),
        ({"parallelism": 5, "suspend": True}, {}, 0),
        ({"parallelism": 5}, {"conditions": [{"type": "Complete", "status": "True"}]}, 0),
        ({"parallelism": 5}, {"conditions": [{"type": "Suspended", "status": "True"}]}, 5),
    ],
)
def test_a_job_has_the_pods_that_run_at_once(
    spec: dict[str, Any], status: dict[str, Any], count: int
) -> None:
    job = {**workload("Job", version="batch/v1", **spec), "status": status}
    assert len(waiting(job)) == count


def test_a_template_needs_no_labels() -> None:
    bare = workload("ReplicaSet")
    del bare["spec"]["template"]["metadata"]
    assert waiting(bare) == ["default/w-0"]


def test_a_generated_name_is_made_up() -> None:
    job = workload("Job", version="batch/v1", parallelism=2)
    job["metadata"] = {"generateName": "job-"}
    bare = pod()
    bare["metadata"] = {"generateName": "pod-"}
    assert waiting(job, job, bare, bare) == [
        *("default/job-0", "default/job-0", "default/job-1", "default/job-1"),
        *("default/pod-0", "default/pod-1"),
    ]


def test_workloads_and_their_pods_count_once() -> None:
    replica_set = owned(workload("ReplicaSet", "web-5d", replicas=3), "Deployment", "web")
    standing = owned(pod("web-5d-x", nodeName="n1"), "ReplicaSet", "web-5d")
    ended = owned({**pod("web-5d-y"), "status": {"phase": "Failed"}}, "ReplicaSet", "web-5d")
    found = waiting(deployment(replicas=3), replica_set, standing, ended)
    assert found == ["default/web-0", "default/web-1"]
    taken = owned(pod("web-0", nodeName="n1"), "ReplicaSet", "web-5d")
    assert waiting(deployment(replicas=2), replica_set, taken) == ["default/web-1"]


def test_a_replica_set_without_its_deployment_counts_itself() -> None:
    assert waiting(owned(workload("ReplicaSet"), "Deployment", "gone")) == ["default/w-0"]


def test_owners_in_a_circle_end() -> None:
    first = owned(workload("ReplicaSet", "a"), "Deployment", "b")
    second = owned(workload("Deployment", "b"), "ReplicaSet", "a")
    assert waiting(first, second) == []


def test_a_pod_with_a_status_is_taken_at_its_word() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    marked = {**pod("marked"), "status": {"conditions": [condition]}}
    resting = {**pod("resting"), "status": {"conditions": [{**condition, "reason": "Other"}]}}
    fresh = {**pod("fresh"), "status": {"phase": "Pending"}}
    gated = [pod(name, schedulingGates=[{"name": "a"}]) for name in ("gated", "held")]
    offline = read(marked, resting, fresh, *gated)
    ready = [other_pod.name for other_pod in offline.snapshot.pending if other_pod.is_provisionable]
    assert ready == ["fresh", "marked"]
    both = "no capacity is planned for 2 pods, such as default/gated: each has scheduling gates"
    one = "no capacity is planned for 1 pod, default/resting: it is not marked Unschedulable"
    assert offline.notes[0].startswith(both)
    assert offline.notes[1].startswith(one)


def test_pods_of_fargate_are_left_to_it_and_those_of_other_schedulers_planned_with_a_note() -> None:
    offline = read(pod("own", schedulerName="fargate-scheduler"), pod("a", schedulerName="volcano"))
    assert [found.name for found in offline.snapshot.pending if found.is_provisionable] == ["a"]
    own = "no capacity is planned for 1 pod, default/own: it has schedulerName fargate-scheduler"
    assert offline.notes[0].startswith(own)
    assert offline.notes[1].startswith("1 pod, default/a: scheduler volcano chooses its node")


def test_other_kinds_are_left_out_with_a_note() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}
    foreign = {**workload("Job"), "apiVersion": "batch.volcano.sh/v1"}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "a"}}
    offline = read(service, service, foreign, budget)
    assert offline.notes == (
        "Job default/w: not planned: it has a pod template and no spec.replicas",
        "left out, of kinds that are not read: 2 Service",
    )


def test_a_zone_of_another_region_is_met_with_the_command_for_its_prices() -> None:
    requirement = {"key": keys.ZONE, "operator": "In", "values": ["eu-west-1a", "us-east-1a"]}
    notes = read({**PROVISIONER, "spec": {"requirements": [requirement]}}).notes
    (told,) = (note for note in notes if "dovetail catalog" in note)
    assert told == (
        "these prices are of us-east-1: `dovetail catalog --region eu-west-1 --output FILE` writes "
        "those of eu-west-1, for --catalog FILE"
    )


def test_a_short_node_is_a_healthy_node() -> None:
    bare = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n2"}}
    typed = {**bare, "metadata": {"name": "n2", "labels": {keys.INSTANCE_TYPE: "m5.large"}}}
    sized = {**bare, "metadata": {"name": "n3"}, "status": {"capacity": {"cpu": "4"}}}
    condition = {"type": "Ready", "status": "False"}
    ill = {**node("n4"), "status": {"capacity": {"cpu": "4"}, "conditions": [condition]}}
    given, by_type, by_capacity, sick = read(node("n1"), typed, sized, ill).snapshot.nodes
    assert given.ready is True
    assert given.labels[keys.HOSTNAME] == "n1"
    assert by_type.allocatable == CATALOG.instance_types[0].allocatable
    assert by_capacity.allocatable["cpu"] == 4000
    assert sick.ready is False
    with pytest.raises(InvalidDocumentError, match=r"document 1: status\.allocatable: write what"):
        read(bare)


def test_daemons_take_room_on_nodes_that_are_there_once() -> None:
    daemon = workload("DaemonSet", "agent")
    picky = workload("DaemonSet", "picky")
    picky["spec"]["template"]["spec"]["nodeSelector"] = {"a": "b"}
    tainted = node("n3")
    tainted["spec"] = {"taints": [{"key": "k", "effect": "NoSchedule"}]}
    running = owned(pod("agent-x", nodeName="n2"), "DaemonSet", "agent")
    snapshot = read(daemon, picky, node("n1"), node("n2"), tainted, running).snapshot
    assert [(other_pod.name, other_pod.node_name) for other_pod in snapshot.bound] == [
        ("agent-n1", "n1"),
        ("agent-x", "n2"),
    ]
    assert [daemon_set.name for daemon_set in snapshot.daemonsets] == ["agent", "picky"]
    # Rules of other pods count them like any others.
    assert snapshot.bound[0].labels["app"] == "agent"
    assert set(snapshot.bound[0].labels) == {
        *("app", "controller-revision-hash", "pod-template-generation"),
    }


def test_daemonsets_out_of_proportion_are_left_out_with_a_note() -> None:
    huge = [workload("DaemonSet", f"huge-{number}") for number in range(4)]
    for daemon in huge:
        daemon["spec"]["template"]["spec"]["containers"] = [container(cpu="1000")]
    found = read(*huge, PROVISIONER, node("n1"))
    assert found.snapshot.daemonsets == ()
    assert found.snapshot.bound == ()
    told = [note for note in found.notes if "DaemonSet" in note]
    assert told[0].startswith("DaemonSet default/huge-0 is left out: each of its pods requests cpu")
    assert told[3:] == ["DaemonSets left out besides: 1"]


def test_every_zone_of_the_catalogue_has_a_subnet() -> None:
    (site,) = read(PROVISIONER).snapshot.sites
    assert site.zones == make.ZONES


def claim(name: str = "data", **spec: object) -> dict[str, object]:
    metadata = {"name": name}
    kind = "PersistentVolumeClaim"
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}


def volume(zone: str, labels: Mapping[str, str] | None = None) -> dict[str, object]:
    expression = {"key": "topology.ebs.csi.aws.com/zone", "operator": "In", "values": [zone]}
    term = {"matchExpressions": [expression]}
    affinity = {"required": {"nodeSelectorTerms": [term]}} if zone else {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv", "labels": labels or {}},
        "spec": {"nodeAffinity": affinity},
    }


def storage_class(name: str, zone: str, *, default: bool = False) -> dict[str, object]:
    annotations = {"storageclass.kubernetes.io/is-default-class": str(default).lower()}
    expression = {"key": keys.ZONE, "values": [zone]}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": annotations},
        "allowedTopologies": [{"matchLabelExpressions": [expression]}],
    }


def zones_bought(*raws: Mapping[str, object]) -> set[str]:
    plan = decide(read(PROVISIONER, *raws).snapshot)
    assert plan.unschedulable == ()
    return {option.offering.zone for node in plan.nodes for option in node.options}


CLAIMING = pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])


def test_pod_is_placed_in_the_zone_of_its_volume() -> None:
    bound = claim(volumeName="pv")
    zone = make.ZONES[2]
    assert zones_bought(CLAIMING, bound, volume(zone)) == {zone}
    assert zones_bought(CLAIMING, bound, volume("", {keys.ZONE: f"{zone}__x"})) == {zone}
    assert zones_bought(CLAIMING, bound, volume(zone, {keys.ZONE: zone})) == {zone}


def test_a_new_volume_is_made_where_its_class_allows() -> None:
    first, second = make.ZONES[0], make.ZONES[1]
    classes = storage_class("slow", first), storage_class("fast", second, default=True)
    assert zones_bought(CLAIMING, claim(), *classes) == {second}
    assert zones_bought(CLAIMING, claim(storageClassName="slow"), *classes) == {first}
    assert len(zones_bought(CLAIMING, claim(storageClassName="other"), *classes)) == 3


def test_claims_of_a_template_and_ephemeral_ones_count_too() -> None:
    zone = make.ZONES[1]
    fast = storage_class("fast", zone)
    template = {"metadata": {"name": "data"}, "spec": {"storageClassName": "fast"}}
    stateful = workload("StatefulSet", replicas=2, volumeClaimTemplates=[template])
    assert zones_bought(stateful, fast) == {zone}
    inline = {"volumeClaimTemplate": {"spec": {"storageClassName": "fast"}}}
    assert zones_bought(pod(volumes=[{"name": "v", "ephemeral": inline}]), fast) == {zone}
    both = deployment(volumes=[{"name": "v", "ephemeral": inline}])
    assert zones_bought(both, fast) == {zone}
    assert zones_bought(
        stateful, claim("data-w-0", volumeName="pv"), volume(make.ZONES[0]), fast
    ) == {
        zone,
        make.ZONES[0],
    }


def test_replicas_with_claims_are_one_class() -> None:
    template = {"metadata": {"name": "data"}, "spec": {}}
    stateful = workload("StatefulSet", replicas=9, volumeClaimTemplates=[template])
    found = read(stateful).snapshot.pending
    assert len({other_pod.scheduling for other_pod in found}) == 1


def test_undescribed_claim_is_reported() -> None:
    offline = read(CLAIMING)
    assert offline.notes == ("PersistentVolumeClaim default/data not given: taken to fit any zone",)
    other = pod("b", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "more"}}])
    assert "default/data and 1 more not given" in read(CLAIMING, other).notes[0]


def test_too_many_alternatives_are_refused_for_the_pod() -> None:
    terms = [
        {"matchExpressions": [{"key": keys.ZONE, "operator": "In", "values": [f"z{number}"]}]}
        for number in range(300)
    ]
    wide = {**volume("")}
    wide["spec"] = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}
    required = {"nodeSelectorTerms": terms[:2]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    asking = pod(
        affinity=affinity,
        volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
    )
    plan = decide(read(PROVISIONER, asking, claim(volumeName="pv"), wide).snapshot)
    assert "more than 256 alternatives" in plan.unschedulable[0].reasons[0]
