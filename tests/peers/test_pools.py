"""The comparison of what both sides decide for published NodePools: each wrong answer is found."""

from functools import cache
from pathlib import Path

import pytest

from shared.instance_types.catalog import Catalog, embedded_catalog
from shared.model import labels as keys
from shared.model.values import replace
from tests.peers.pool_clusters import Cluster, clusters
from tests.peers.pool_pods import MOST_WORKLOADS, Asked, pods_for
from tests.peers.pools import (
    OTHER_LABELS,
    OTHER_POOL,
    PLACED_BY_DOVETAIL,
    PLACED_BY_KARPENTER,
    Compared,
    Decided,
    Difference,
    compare,
    decided_by_dovetail,
    explained,
    read_karpenter,
    section,
    section_of,
    with_section,
)

POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  limits: {cpu: 64}
  template:
    metadata: {labels: {example.com/team: blue}}
    spec:
      taints: [{key: example.com/team, value: blue, effect: NoSchedule}]
      requirements:
        - {key: topology.kubernetes.io/zone, operator: In, values: [eu-west-1a, eu-west-1b]}
        - {key: karpenter.k8s.aws/instance-family, operator: In, values: [m5]}
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: elsewhere}
"""
FOREIGN = POOL.replace(
    "karpenter.k8s.aws, kind: EC2NodeClass", "eks.amazonaws.com, kind: NodeClass"
)
REFUSED = POOL.replace("template:", "replicas: 2\n  template:", 1)


@cache
def small_catalog() -> Catalog:
    whole = embedded_catalog()
    few = (
        entry for entry in whole.instance_types if entry.name.startswith(("m5.", "c6g.", "g4dn."))
    )
    return replace(whole, instance_types=tuple(few))


def read(folder: Path, **files: str) -> list[Cluster]:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    (folder / "INDEX.md").write_text("not a manifest", encoding="utf-8")
    return list(clusters(folder, small_catalog(), 1))


def of_kind(cluster: Cluster, kind: str) -> Asked:
    return next(asked for asked in cluster.asked if asked.kind == kind)


def test_files_are_read_as_clusters(tmp_path: Path) -> None:
    twice = f"{POOL}---{POOL}"
    found = read(tmp_path, a=POOL, b=REFUSED, c=FOREIGN, d=twice, e="a: [")
    assert [cluster.name for cluster in found] == ["a.yaml 0", "d.yaml 0", "d.yaml 1"]
    assert found[0].catalog.region == "eu-west-1"
    assert found[0].pools[0]["metadata"]["name"] == "general"
    asked = found[0].for_karpenter(found[0].snapshot())
    assert list(asked["types"]) == ["general"]
    assert len(asked["workloads"]) == len(found[0].asked)


def test_dovetail_decides_for_each_workload_alone_and_agrees_with_itself(tmp_path: Path) -> None:
    (cluster,) = read(tmp_path, a=POOL)
    decided = decided_by_dovetail(cluster, cluster.snapshot())
    found = [
        compare(asked, decided[asked.workload.name], decided[asked.workload.name])
        for asked in cluster.asked
    ]
    assert not any(entry.differing for entry in found)
    by_kind = {entry.kind: (entry.placed, entry.left_out) for entry in found}
    assert by_kind["the NodePool's labels"] == (2, 0)
    assert by_kind["zone, named by the NodePool"] == (1, 0)
    assert by_kind["spread over zones"] == (4, 0)
    assert by_kind["a taint not tolerated"] == (0, 1)
    assert by_kind["an NVIDIA GPU"] == (0, 1)
    assert by_kind["more than the limit"] == (0, 1)
    text, too_much = section([cluster], found)
    assert "| spread over zones | 4 | 4 | 0 | 0 |" in text
    assert not too_much


def test_pods_follow_from_the_node_pool_and_the_seed(tmp_path: Path) -> None:
    (cluster,) = read(tmp_path, a=POOL)
    types = cluster.catalog.instance_types
    assert pods_for(cluster.pools, types, 1) == list(cluster.asked)
    assert pods_for(cluster.pools, types, 2) != list(cluster.asked)
    assert len(pods_for(cluster.pools * 9, types, 1)) == MOST_WORKLOADS


NODE = {keys.NODE_POOL: "general", keys.ZONE: "eu-west-1a"}


def placed(asked: Asked, *nodes: dict[str, str]) -> Decided:
    return Decided(labels=dict(zip(asked.workload.pods, nodes, strict=True)), left_out={})


@pytest.mark.parametrize(
    ("kind", "nodes", "wrong", "what"),
    [
        ("the NodePool by name", [NODE] * 2, [NODE, {**NODE, keys.NODE_POOL: "b"}], OTHER_POOL),
        ("zone, by its older label", [NODE], [{**NODE, keys.ZONE: "eu-west-1b"}], OTHER_LABELS),
        (
            "spread over zones",
            [NODE, {**NODE, keys.ZONE: "eu-west-1b"}] * 2,
            [*[NODE] * 3, {**NODE, keys.ZONE: "eu-west-1b"}],
            OTHER_LABELS,
        ),
    ],
)
def test_answer_with_another_node_differs(
    tmp_path: Path, kind: str, nodes: list[dict[str, str]], wrong: list[dict[str, str]], what: str
) -> None:
    asked = of_kind(read(tmp_path, a=POOL)[0], kind)
    right, falsified = placed(asked, *nodes), placed(asked, *wrong)
    assert compare(asked, right, right).placed == len(nodes)
    assert {found for found, _ in compare(asked, right, falsified).differing} == {what}
    assert {found for found, _ in compare(asked, falsified, right).differing} == {what}


def test_pod_that_one_side_leaves_out_differs_and_one_that_is_forgotten_is_an_error(
    tmp_path: Path,
) -> None:
    asked = of_kind(read(tmp_path, a=POOL)[0], "the NodePool by name")
    first, second = asked.workload.pods
    both = placed(asked, NODE, NODE)
    one = Decided(labels={first: NODE}, left_out={second: "too large"})
    said = {"nodes": [{"labels": NODE, "pods": [first]}], "leftOut": {second: "too large"}}
    assert read_karpenter({"workloads": {"a": said}}) == {"a": one}
    assert compare(asked, one, both).differing == ((PLACED_BY_KARPENTER, "too large"),)
    assert compare(asked, both, one).differing == ((PLACED_BY_DOVETAIL, "too large"),)
    with pytest.raises(ValueError, match="must be decided for once"):
        compare(asked, both, Decided(labels={first: NODE}, left_out={}))


def test_differences_are_counted_by_their_reason_and_too_many_are_told() -> None:
    differing = ((PLACED_BY_DOVETAIL, "its limits"), (OTHER_POOL, "a / b"))
    found = [Compared(kind="x", placed=8, left_out=0, differing=differing)]
    known = (Difference(what=PLACED_BY_DOVETAIL, said="limits", reason="taken exactly"),)
    counts, unexplained = explained(found, known)
    assert counts == {(PLACED_BY_DOVETAIL, "taken exactly"): 1}
    assert unexplained == [f"x: {OTHER_POOL}: a / b"]
    text, too_much = section([], found, known)
    assert f"| {PLACED_BY_DOVETAIL} | 1 | taken exactly |" in text
    assert too_much == [*unexplained, "2 of 10 pods differ, at most 2 % may"]
    assert section([], [])[1] == ["0 of 0 pods differ, at most 2 % may"]


def test_the_section_is_replaced_and_the_rest_of_the_document_stays() -> None:
    first, _ = section([], [Compared(kind="one", placed=1, left_out=0)])
    second, _ = section([], [Compared(kind="two", placed=1, left_out=0)])
    written = with_section("# Peers\n\nText.\n", first)
    assert section_of(written) == first
    assert with_section(written, second) == f"# Peers\n\nText.\n\n{second}"
    assert section_of("# Peers\n") == ""
