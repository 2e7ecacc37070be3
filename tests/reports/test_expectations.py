"""Each expectation of a row holds where it is true, and fails where it is not."""

from pathlib import Path
from typing import Any

import pytest

from tests.reports.judging import EXPECTATIONS, Answer, answer_to, differences
from tests.reports.reading import read_row

_HEAD = """\
report: https://example.com/1
area: other
gist: two pods that must be apart, one that fits nothing, one on a node that stands
right: two nodes
why: it is written so
source: https://example.com/2
"""
_MANIFESTS = """\
apiVersion: v1
kind: Node
metadata:
  name: old
  labels:
    node.kubernetes.io/instance-type: m5.large
    team: own
    topology.kubernetes.io/zone: us-east-1a
---
apiVersion: v1
kind: Pod
metadata: {name: beside}
spec:
  nodeSelector: {team: own}
  containers: [{name: c, resources: {requests: {cpu: 100m}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: large}
spec:
  containers: [{name: c, resources: {requests: {cpu: 900}}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {topology.kubernetes.io/zone: us-east-1b}
      containers: [{name: c, resources: {requests: {cpu: 3}}}]
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: w}
"""
_LEFT = {"unplaced": {"large": "instance type is large enough"}}
TRUE: dict[str, Any] = {
    "apart": [["web-*"], ["beside", "web-0"]],
    "beside": {"web-0": "web-0"},
    "gap_at_most": 100,
    "labels": {"web-*": {"arch": "amd64", "karpenter.k8s.aws/instance-category": ["c", "m", "r"]}},
    "no_notes": "Gadget",
    "nodes": 2,
    "nodes_at_least": 2,
    "nodes_at_most": 2,
    "notes": ["1 Widget", "left out"],
    "on": {"old": ["beside"]},
    "per_node_at_most": {"web-*": 1},
    "pods": {"*": 4, "web-*": 2},
    "pools": {"web-*": "default"},
    "price_at_most": {"m5.2xlarge": 2},
    "requests": {"web-*": {"cpu": 6}},
    "room": {"web-*": {"cpu": [3, 8]}},
    "shares": {"web-*": {"zone": [2], "host": [1, 1]}},
    "together": [["beside"]],
    "types_in": ["c*", "m*", "r*"],
    "types_not_in": {"web-*": ["t3.*"]},
    "zones": {"web-*": "us-east-1b"},
}
FALSE: list[tuple[str, Any]] = [
    ("apart", [["web-0", "web-0", "web-1", "we*"], ["beside", "b*", "large"]]),
    ("beside", {"web-*": "web-0"}),
    ("gap_at_most", -1),
    ("labels", {"web-*": {"arch": "arm64"}}),
    ("labels", {"beside": {"zone": "us-east-1a"}}),
    ("no_notes", "Widget"),
    ("nodes", 3),
    ("nodes_at_least", 3),
    ("nodes_at_most", 1),
    ("notes", "Gadget"),
    ("on", {"old": ["web-0"]}),
    ("on", {"older": ["beside"]}),
    ("per_node_at_most", {"web-*": 0}),
    ("pods", 5),
    ("pods", {"db-*": 1}),
    ("pools", {"web-*": "other"}),
    ("price_at_most", 0.1),
    ("price_at_most", {"m5.large": 1}),
    ("refused", "no such field"),
    ("requests", {"web-*": {"cpu": 2}}),
    ("room", {"web-*": {"memory": ["500Gi", "600Gi"]}}),
    ("shares", {"web-*": {"host": [2]}}),
    ("shares", {"web-*": {"zone": [1, 1]}}),
    ("together", [["web-*"]]),
    ("together", [["db-*"]]),
    ("types_in", ["c6a.*", "t3.*", "c7a.medium"]),
    ("types_not_in", ["c*", "m*", "r*"]),
    ("unplaced", {}),
    ("unplaced", {"large": "taints"}),
    ("unplaced", {"*": {"pods": 2, "reason": "instance type"}}),
    ("unplaced", {"large": "instance type", "web-0": ""}),
    ("zones", {"web-*": "us-east-1a"}),
]


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    folder = tmp_path_factory.mktemp("row")
    return answer_to(read_row(_written(folder, "expect: {nodes: 2}\n")), folder)


def _written(folder: Path, more: str, manifests: str = _MANIFESTS) -> Path:
    path = folder / "some-1.yaml"
    path.write_text(f"{_HEAD}{more}\n---\n{manifests}", encoding="utf-8")
    return path


@pytest.mark.parametrize("key", TRUE)
def test_what_is_true_holds(answer: Answer, key: str) -> None:
    assert not list(differences(answer, {key: TRUE[key], **_LEFT}))


@pytest.mark.parametrize(("key", "wrong"), FALSE, ids=str)
def test_what_is_false_is_found(answer: Answer, key: str, wrong: object) -> None:
    assert list(differences(answer, {**_LEFT, key: wrong}))


def test_a_number_of_pods_without_a_place_is_counted(answer: Answer) -> None:
    expected = {"*": {"pods": 1, "reason": "instance type is large enough"}}
    assert not list(differences(answer, {"unplaced": expected}))


def test_each_expectation_is_tried_both_ways() -> None:
    assert {key for key, _ in FALSE} == EXPECTATIONS.keys()
    assert {*TRUE, "refused", "unplaced"} == EXPECTATIONS.keys()


def test_an_unknown_expectation_is_refused(answer: Answer) -> None:
    with pytest.raises(ValueError, match=r"expect: node: not known; known are apart, "):
        list(differences(answer, {"node": 2}))


def test_a_refusal_must_be_expected(tmp_path: Path) -> None:
    path = _written(tmp_path, "expect: {nodes: 2}\n", "apiVersion: v2\nkind: Pod\n")
    refusal = answer_to(read_row(path), tmp_path)

    assert list(differences(refusal, {"nodes": 0}))
    assert list(differences(refusal, {"refused": "no such reason"}))
    assert not list(differences(refusal, {"refused": ["apiVersion: v2", "write v1"]}))


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("expect: {nodes: 2}\nexpects: {}\n", "expects: not known"),
        ("settings: {}\n", "expect: not known, or not written"),
        ("expect: {}\n", "expect: write what must hold"),
        ("expect: {nodes: 1}\narea: far\n", "area: far"),
        ("expect: {nodes: 1}\nsource: a book\n", "source: a book"),
    ],
    ids=["a field too many", "a field too few", "nothing expected", "area", "source"],
)
def test_a_row_that_is_not_written_as_it_must_be_is_refused(
    tmp_path: Path, more: str, told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        read_row(_written(tmp_path, more))
