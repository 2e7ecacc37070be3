"""What examples/constraints says of every pod is what a plan does with it."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from functions.cli.plan.explanation import explanation, find_pod
from functions.cli.plan.inputs import read_all, read_catalog
from functions.cli.plan.reading.documents import Document
from functions.cli.plan.reading.snapshot import read_snapshot
from shared.model import labels as keys
from shared.model.ec2.launches import LaunchOption, PlannedNode
from shared.model.plan import Plan
from shared.model.snapshot import ClusterSnapshot
from shared.planning.decide import decide

FOLDER = Path(__file__).parents[4] / "examples" / "constraints"
# Of rows such as `| by-zone-0 to by-zone-5 | … | new nodes, … |`.
ROW = re.compile(r"^\| (\S+?)(?: to (\S+))? \| .* \| ([^|]+) \|$", re.MULTILINE)
# Fields of manifests that decide where pods go.
FEATURES = """
    startupTaints kubeletConfiguration maxPods podsPerCore systemReserved evictionHard weight
    limits annotations nodeSelector matchExpressions matchFields nodeAffinity podAffinity
    podAntiAffinity requiredDuringSchedulingIgnoredDuringExecution tolerations
    preferredDuringSchedulingIgnoredDuringExecution namespaceSelector namespaces minDomains
    matchLabelKeys nodeAffinityPolicy nodeTaintsPolicy volumeName claimRef allowedTopologies
    ephemeral volumeClaimTemplates awsElasticBlockStore allocatable hostPort initContainers
    restartPolicy runtimeClassName podFixed priorityClassName schedulingGates deletionTimestamp
    ownerReferences nominatedNodeName persistentVolumeClaim local csi hugepages-2Mi
    nvidia.com/gpu amd.com/gpu aws.amazon.com/neuron vpc.amazonaws.com/pod-eni
"""
ANSWERS = ("new node", "node ", "waits: ", "not asked")


@dataclass(frozen=True)
class World:
    documents: tuple[Document, ...]
    snapshot: ClusterSnapshot
    plan: Plan


@pytest.fixture(scope="module")
def world() -> World:
    documents = tuple(read_all([str(FOLDER)], []))
    offline = read_snapshot(documents, read_catalog(None))
    return World(documents, offline.snapshot, decide(offline.snapshot))


def told() -> dict[tuple[str, ...], str]:
    """Return the answers of the README by the names of pods (namespace/name)."""
    found = {}
    for first, last, answer in ROW.findall((FOLDER / "README.md").read_text()):
        if not answer.startswith(ANSWERS):
            continue
        names = [first]
        if last:
            stem, _, end = last.rpartition("-")
            names = [f"{stem}-{number}" for number in range(int(end) + 1)]
        found[tuple(name if "/" in name else f"default/{name}" for name in names)] = answer
    return found


def options(node: PlannedNode) -> tuple[LaunchOption, ...]:
    return (*node.options, *node.fallback)


def values(world: World, node: PlannedNode, key: str) -> set[str | None]:
    """Return the values that a node may turn out to have of a label."""
    types = {instance_type.name: instance_type for instance_type in world.snapshot.instance_types}
    return {
        {
            **types[option.offering.instance_type].labels,
            keys.ZONE: option.offering.zone,
            keys.CAPACITY_TYPE: option.offering.capacity_type.value,
            **node.labels,
        }.get(key)
        for option in options(node)
    }


def place(world: World, pod: str) -> PlannedNode:
    (node,) = [
        planned_node
        for planned_node in world.plan.nodes
        if any(ref.key == pod for ref in planned_node.pods)
    ]
    return node


def check(world: World, pods: tuple[str, ...], answer: str) -> None:
    """Hold one line of the README against the plan."""
    if answer == "not asked":
        spoken = {ref.key for ref in world.plan.order}
        spoken |= {pod_left.pod.key for pod_left in world.plan.unschedulable}
        assert not spoken.intersection(pods)
    elif answer.startswith("waits: "):
        (lost,) = [pod_left for pod_left in world.plan.unschedulable if pod_left.pod.key in pods]
        assert any(answer.removeprefix("waits: ") in reason for reason in lost.reasons)
    elif answer.startswith("node "):
        there = {
            ref.key: placement.node for placement in world.plan.placements for ref in placement.pods
        }
        assert {there[value] for value in pods} <= set(answer.removeprefix("node ").split(" or "))
    elif answer.startswith("new nodes, "):
        check_together(world, pods, answer.removeprefix("new nodes, "))
    else:
        for pod in pods:
            check_node(world, place(world, pod), answer)


def check_node(world: World, node: PlannedNode, answer: str) -> None:
    asked = re.fullmatch(
        r"new node(?: of (\S+))?(?: (not )?in (\S+))?(?: with (\S+) (\S+))?", answer
    )
    assert asked is not None, answer
    provisioner, outside, zone, key, value = asked.groups()
    assert provisioner in (None, node.provisioner)
    if zone:
        zones = values(world, node, keys.ZONE)
        assert zone not in zones if outside else zones == {zone}
    if key:
        assert values(world, node, key) == {value}


def check_together(world: World, pods: tuple[str, ...], answer: str) -> None:
    numbers = {id(node): n for n, node in enumerate(world.plan.nodes)}
    nodes = [place(world, pod) for pod in pods]
    in_all = re.fullmatch(r"(\d+) in all", answer)
    if in_all is not None:
        assert len({numbers[id(planned_node)] for planned_node in nodes}) == int(in_all[1])
        return
    key = answer.removeprefix("skew 1 over ")
    assert key != answer
    if key == keys.HOSTNAME:
        assert len({numbers[id(planned_node)] for planned_node in nodes}) == len(pods)
        return
    counts: Counter[str] = Counter()
    for node in nodes:
        (value,) = values(world, node, key)
        assert value is not None
        counts[value] += 1
    assert max(counts.values()) - min(counts.values()) <= 1
    assert len(counts) > 1


def test_the_plan_does_what_the_readme_says_of_every_pod(world: World) -> None:
    for pods, answer in told().items():
        try:
            check(world, pods, answer)
        except (AssertionError, ValueError) as error:
            raise AssertionError(f"{', '.join(pods)}: {answer!r} is not what the plan says") from (
                error
            )


def test_the_readme_names_every_pod_once(world: World) -> None:
    spoken = [name for pods in told() for name in pods]
    gone = {"default/done"}
    assert sorted(spoken) == sorted(gone | {pod.key for pod in world.snapshot.pending})


def test_new_nodes_keep_room_for_what_every_node_runs(world: World) -> None:
    agent = next(
        daemon_set for daemon_set in world.snapshot.daemonsets if daemon_set.name == "agent"
    )
    for node in world.plan.nodes:
        assert node.daemon_requests["cpu"] >= agent.scheduling.requests["cpu"]
        assert len(node.pods) <= 7 or node.provisioner != "dense"


@pytest.mark.parametrize(
    ("pod", "text"),
    [
        ("near", "goes to new node"),
        ("guest", "which has room: nothing is launched for it"),
        ("gated", "it has scheduling gates"),
        ("holder", "it is on node fixed-2 already"),
        ("half-blue", "blue: does not tolerate taint example.com/trial=true:NoExecute"),
        ("op-doesnotexist", "racked: needs example.com/rack absent"),
    ],
)
def test_each_pod_can_be_explained(world: World, pod: str, text: str) -> None:
    found = find_pod(world.snapshot, pod)
    assert found is not None
    assert any(text in line for line in explanation(world.snapshot, world.plan, found))


def walk(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield every field of a document with its name."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name, inner
            yield from walk(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from walk(inner)


def test_the_manifests_use_every_feature(world: World) -> None:
    fields: dict[str, list[Any]] = {}
    for document in world.documents:
        for name, value in walk(document.raw):
            fields.setdefault(name, []).append(value)
    assert set(fields["operator"]) >= {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Equal"}
    assert set(fields["effect"]) == {"NoSchedule", "NoExecute", "PreferNoSchedule"}
    assert set(fields["whenUnsatisfiable"]) == {"DoNotSchedule", "ScheduleAnyway"}
    assert set(fields["topologyKey"]) == {
        *(keys.ZONE, keys.HOSTNAME, keys.CAPACITY_TYPE),
        "example.com/rack",
    }
    assert not set(FEATURES.split()) - fields.keys()
    assert ["ReadWriteOncePod"] in fields["accessModes"]
