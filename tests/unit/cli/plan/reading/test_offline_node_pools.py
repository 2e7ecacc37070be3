"""NodePools and EC2NodeClasses among the files of an offline plan."""

from typing import Any

import pytest

from functions.cli.plan.reading.documents import Document, InvalidDocumentError
from functions.cli.plan.reading.snapshot import read_snapshot
from shared.model.values import replace
from shared.planning.decide import decide
from shared.planning.rules.limits import used_capacity
from tests import builders as make
from tests.unit.cli.running import CATALOG, PROVISIONER, read
from tests.unit.manifests.documents import CLASS_REF, node_class, node_pool

FOREIGN = node_pool({"nodeClassRef": {**CLASS_REF, "group": "eks.amazonaws.com"}})
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {
        "nodeSelector": {
            "karpenter.sh/nodepool": "default",
            "karpenter.k8s.aws/ec2nodeclass": "nodes",
        },
        "containers": [{"name": "a", "resources": {"requests": {"cpu": 1}}}],
    },
}


def node(**labels: str) -> dict[str, Any]:
    given = {"node.kubernetes.io/instance-type": "m5.large", **labels}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "old", "labels": given}}


def test_pod_gets_a_node_of_the_pool_that_it_selects() -> None:
    found = read(node_pool(), node_class(), POD)
    (planned,) = decide(found.snapshot).nodes
    assert planned.provisioner == "default"
    assert planned.labels["karpenter.sh/nodepool"] == "default"
    assert "karpenter.sh/provisioner-name" not in planned.labels
    assert found.notes == ()


def test_pools_and_provisioners_are_planned_side_by_side() -> None:
    other = {**dict(PROVISIONER), "metadata": {"name": "older"}}
    found = read(node_pool(), other, node_class(), POD)
    assert [entry.kind for entry in found.snapshot.provisioners] == ["NodePool", "Provisioner"]
    assert [planned.provisioner for planned in decide(found.snapshot).nodes] == ["default"]


def test_a_pool_of_another_provider_is_left_alone_without_a_word() -> None:
    found = read(FOREIGN)
    assert (found.snapshot.provisioners, found.notes) == ((), ())


def test_warnings_of_a_class_are_reported_once_for_all_its_pools() -> None:
    second = {**node_pool(replicas=None), "metadata": {"name": "second"}}
    terms = [{"alias": "al2@lates"}]
    marked = node_class(role="workers", instanceProfile=None, amiSelectorTerms=terms)
    found = read(node_pool(limits={"gpu": 1}), second, marked)
    assert [note.partition(" ")[0] for note in found.notes] == ["EC2NodeClass", "NodePool"]
    assert found.notes[1].startswith("NodePool default: spec.limits.gpu: 1: no instance has")


def test_a_limit_on_nodes_counts_those_that_are_there() -> None:
    pods = [{**POD, "metadata": {"name": f"web-{n}"}} for n in range(9)]
    pool = node_pool(limits={"nodes": 2})
    old = {**node(**{"karpenter.sh/nodepool": "default"}), "spec": {"unschedulable": True}}
    snapshot = read(pool, node_class(), old, *pods).snapshot
    assert used_capacity(snapshot)["default"]
    assert len(decide(snapshot).nodes) == 1


def test_a_node_of_a_pool_that_is_not_given_has_no_owner() -> None:
    snapshot = read(node_pool(), node_class(), node(**{"karpenter.sh/nodepool": "x"})).snapshot
    assert snapshot.owner_of(snapshot.nodes[0]) == ""
    assert not used_capacity(snapshot)


def test_v1beta1_is_read_as_v1_with_a_note() -> None:
    pool = {**node_pool(), "apiVersion": "karpenter.sh/v1beta1"}
    described = {**node_class(), "apiVersion": "karpenter.k8s.aws/v1beta1"}
    assert [note.partition(", with")[0] for note in read(pool, described).notes] == [
        "NodePool default: karpenter.sh/v1beta1 is read as karpenter.sh/v1",
        "EC2NodeClass nodes: karpenter.k8s.aws/v1beta1 is read as karpenter.k8s.aws/v1",
    ]


@pytest.mark.parametrize(
    ("raws", "words"),
    [
        (
            (node_pool(),),
            r"a: document 1: spec.template.spec.nodeClassRef.name: nodes: there is no EC2NodeClass",
        ),
        (
            (node_class(userData="[a"),),
            r"a: document 1: EC2NodeClass nodes.spec.userData, line 1: \[a: is no YAML",
        ),
        (
            (dict(PROVISIONER), node_pool(), node_class()),
            r"a: document 2: metadata.name: default: a Provisioner of that name is in a",
        ),
        (
            ({**node_pool(), "apiVersion": "karpenter.sh/v1alpha1"},),
            r"a: document 1: apiVersion: karpenter.sh/v1alpha1: write karpenter.sh/v1",
        ),
        (
            (node_pool(), node_pool(weight=1)),
            r"a: document 2: metadata.name: default: another NodePool of that name",
        ),
    ],
)
def test_what_cannot_be_planned_is_refused_in_one_line(raws: Any, words: str) -> None:
    with pytest.raises(InvalidDocumentError, match=words):
        read(*raws)


def test_types_that_recommended_images_never_boot_are_not_planned() -> None:
    types = (make.instance_type("a1.large"), make.instance_type("m5.large", price=200_000))
    documents = [Document(where="a", raw=raw) for raw in (node_pool(), node_class(), POD)]
    found = read_snapshot(documents, replace(CATALOG, instance_types=types))
    (planned,) = decide(found.snapshot).nodes
    assert {option.offering.instance_type for option in planned.options} == {"m5.large"}
