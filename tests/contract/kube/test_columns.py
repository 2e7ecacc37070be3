"""Values written as columns are read back, what was one object is one again, and no other is."""

from datetime import timedelta

import pytest

from shared.kube.kept.columns import ColumnsError, decode, encode
from shared.manifests.nodes import decode_node
from shared.manifests.pods import PodDecoder
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.values import replace
from tests.scale import manifests

_DECODER = PodDecoder()
PODS = tuple(_DECODER.decode(manifests.pod(number, 0)) for number in (0, 100, 201))


def test_pods_of_a_workload_share_what_they_shared() -> None:
    pods = (*PODS, replace(PODS[0], uid="other", kept_for=timedelta(minutes=5), owner=None))
    found = decode(Pod, encode(Pod, pods))
    assert found == pods
    assert found[0].scheduling is found[1].scheduling
    assert found[0].labels is found[1].labels


@pytest.mark.parametrize("nodes", [0, 1, 3])
def test_any_number_of_nodes_is_read_back(nodes: int) -> None:
    values = tuple(decode_node(manifests.node(number)) for number in range(nodes))
    assert decode(Node, encode(Node, values)) == values


@pytest.mark.parametrize("strange", [{"name": "half of a pair: \ud83d"}, {"labels": {"a": 2**70}}])
def test_what_has_no_text_is_refused(strange: dict[str, object]) -> None:
    with pytest.raises(ColumnsError):
        encode(Pod, [replace(PODS[0], **strange)])  # type: ignore[arg-type]


def test_a_text_of_another_class_or_shape_is_refused() -> None:
    text = encode(Pod, PODS)
    for other in (text[:-1], b"\x93" + text[1:], encode(Node, ()), b"\x92\x04" + text[2:]):
        with pytest.raises(ColumnsError):
            decode(Pod, other)
