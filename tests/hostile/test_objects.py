"""Kubernetes objects: no object in a cluster stops the decision about an unrelated pod."""

import base64
import gzip
import json
from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import strategies as st

from functions.forwarder.views import view_node, view_pod, view_provisioner
from shared.kube.api import Decode
from shared.kube.cluster import KubeCluster
from shared.kube.kept import decoding
from shared.kube.rivals import KubeRivals
from shared.manifests.nodes import decode_node
from shared.manifests.pod_bounds import MAX_RULES
from shared.manifests.pods import PodDecoder
from shared.manifests.raw_json import Raw
from shared.model import labels as keys
from shared.model.policy import LaunchPolicy
from shared.model.values import replace
from shared.nodes.join.node_binding import Binding
from shared.nodes.leave.emptiness_timer import Emptiness
from shared.nodes.leave.termination import Termination
from tests.hostile.corpus import BATCH_SIZE, batches, mutated, try_batch, values
from tests.hostile.judging import FLAG, INSTANCE
from tests.hostile.objects import DOCUMENTS, NAMESPACE, crowd, plain_pod
from tests.hostile.wire import Wire
from tests.real.user_data import boot_of
from tests.unit.worlds import World

# In one cluster; a thousand objects are a batch.
_OBJECTS: Final = 5
_CALLS: Final = 400
CALM: Final = {
    "Provisioner": {
        "apiVersion": "karpenter.sh/v1alpha5",
        "kind": "Provisioner",
        "metadata": {"name": "calm", "uid": "uid-calm"},
        "spec": {
            "weight": 100,
            "requirements": [{"key": keys.INSTANCE_FAMILY, "operator": "In", "values": ["m5"]}],
        },
    },
    "Pod": plain_pod("calm-pod"),
}
# Below and above what a pod may have.
CROWDS: Final = (crowd("few", 50), crowd("many", 400))
Objects = list[tuple[str, Any]]


@st.composite
def clusters(draw: st.DrawFn) -> Objects:
    """Draw objects by kind: mostly changed from right ones, some anything at all."""
    found = []
    for _ in range(_OBJECTS):
        kind = draw(st.sampled_from(sorted(DOCUMENTS)))
        anything = st.dictionaries(st.sampled_from(("metadata", "spec", "status")), values)
        found.append((kind, draw(st.one_of(*[mutated(DOCUMENTS[kind])] * 4, anything))))
    return found


def wire_of(hostile: Objects) -> Wire:
    """Return an API server with one right object of each kind, the hostile ones and a calm pod."""
    shelves = {kind: list(found) for kind, found in DOCUMENTS.items()}
    for kind, calm in CALM.items():
        shelves[kind].append(calm)
    shelves["Pod"] += CROWDS
    for kind, found in hostile:
        shelves[kind].append(found)
    return Wire(shelves)


def decided(world: World) -> set[str]:
    """Return the uids of the pods that recorded plans place."""
    placed = set()
    for key, text in world.decisions.documents.items():
        if key.endswith(".gz"):
            plan = json.loads(gzip.decompress(text))["plan"]
            placed |= {
                pod["uid"]
                for part in ("nodes", "placements")
                for p in plan[part]
                for pod in p["pods"]
            }
    return placed


@batches
def test_a_hostile_object_hides_no_other_and_keeps_no_pod_from_being_planned_for(
    batch: int,
) -> None:
    def check(hostile: Objects) -> None:
        wire, world = wire_of(hostile), World()
        cluster = KubeCluster("test", wire.api, now=world.clock.now)
        world.ports = replace(world.ports, cluster=cluster)
        for kind, raw in hostile:
            {"Pod": view_pod, "Node": view_node}.get(kind, view_provisioner)(raw)
        check_reads(cluster)
        KubeRivals(wire.api, world.clock.now, ["kube-system"]).running()
        check_services(world)
        assert wire.strange == []
        assert len(wire.paths) <= _CALLS

    try_batch(batch, clusters(), check, BATCH_SIZE // _OBJECTS)


def check_reads(cluster: KubeCluster) -> None:
    """Assert that each list holds what is right in it."""
    assert {pending_pod.name for pending_pod in cluster.pending_pods()} >= {"calm-pod", "waiting"}
    bound = {bound_pod.name: bound_pod for bound_pod in cluster.bound_pods()}
    assert bound.keys() >= {"running", "few", "many"}
    assert len(bound["few"].scheduling.anti_affinity) == 50
    assert len(bound["many"].scheduling.anti_affinity) == 2 * MAX_RULES
    assert {node.name for node in cluster.nodes()} >= {"n1"}
    assert {daemon_set.name for daemon_set in cluster.daemonsets()} >= {"agent", "huge"}
    assert {disruption_budget.name for disruption_budget in cluster.disruption_budgets()} >= {"web"}
    assert {provisioner.name for provisioner in cluster.provisioners()[0]} >= {"calm"}
    assert {claim.name for claim in cluster.claims([NAMESPACE])} >= {"data"}
    assert {volume.name for volume in cluster.volumes(["pv-1"])} == {"pv-1"}
    assert {storage_pod_class.name for storage_pod_class in cluster.storage_classes()} >= {"gp3"}
    assert {attach_limit.node_name for attach_limit in cluster.attach_limits()} >= {"n1"}
    assert {attached_volume.volume for attached_volume in cluster.attached_volumes()} >= {"pv-1"}
    assert set(cluster.namespaces()) >= {NAMESPACE}
    cluster.volume_attachments("n1")


def check_services(world: World) -> None:
    """Assert that a calm pod is planned for, and that machines are told what is meant."""
    world.provisioning().report_provisioners()
    world.provision()
    assert "uid-calm-pod" in decided(world)
    check_templates(world)
    world.sweep()
    for name in ("n1", "calm"):
        Binding(world.ports, LaunchPolicy()).run(name)
        Emptiness(world.ports).begin(name)
        Termination(world.ports, None).begin(name)


def check_templates(world: World) -> None:
    """Assert that each launch template tells its machines well-formed flags alone."""
    for template, _ in world.cloud.templates.values():
        text = base64.b64decode(template["UserData"]).decode()
        boot = boot_of(text.encode(), INSTANCE)
        assert all(map(FLAG.fullmatch, boot.flags[2:]))
        labels = ",".join(flag.partition("=")[2] for flag in boot.flags if "--node-labels" in flag)
        pairs = [part.partition("=") for part in labels.split(",")]
        assert all(keys.is_key(key) and keys.is_value(value) for key, _, value in pairs)


@batches
@pytest.mark.parametrize(
    ("kind", "decode", "read"),
    [
        ("Pod", decoding.POD_PAGE_DECODER, PodDecoder().decode),
        ("Node", decoding.NODE_PAGE_DECODER, decode_node),
    ],
)
def test_skipping_what_is_not_read_of_a_page_changes_nothing(
    batch: int, kind: str, decode: Decode, read: Callable[[Raw], object]
) -> None:
    def check(hostile: dict[str, Any]) -> None:
        page = {"metadata": {"resourceVersion": "7"}, "items": [*DOCUMENTS[kind], hostile]}
        text = json.dumps(page).encode()
        found, whole = decode(text), json.loads(text)
        assert found["metadata"] == whole["metadata"]
        assert [read(item) for item in found["items"]] == [read(item) for item in whole["items"]]

    try_batch(batch, mutated(DOCUMENTS[kind]), check, BATCH_SIZE // 2)
