"""Pages of pods and nodes are decoded with all fields that are read of them."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from functions.forwarder.views import view_node, view_pod
from shared.kube.kept.decoding import NODE_PAGE_DECODER, POD_PAGE_DECODER
from shared.manifests.nodes import decode_node
from shared.manifests.pods import decode_pod
from shared.model import labels as keys
from tests.scale import manifests

OURS = manifests.node(1, joining=True)
OF_A_POOL = {
    **OURS,
    "metadata": {
        **OURS["metadata"],
        "labels": {keys.NODE_POOL: "a", keys.INITIALIZED: "true"},
        "annotations": {keys.SLOT: "s", keys.PRICE: "5", keys.EMPTINESS_TIMESTAMP: "2026-11-25"},
        "deletionTimestamp": "2026-11-25T00:00:00Z",
    },
}
WAITS = manifests.pod(1, None)
Path = tuple[str | int, ...]


class Noted(dict[str, Any]):
    """An object that notes which of its fields are asked for."""

    def __init__(self, raw: dict[str, Any], path: Path, asked: set[Path]) -> None:
        super().__init__({key: noted(value, (*path, key), asked) for key, value in raw.items()})
        self._path, self._asked = path, asked

    def get(self, key: str, default: Any = None) -> Any:
        self._asked.add((*self._path, key))
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self._asked.add((*self._path, key))
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self._asked.add((*self._path, str(key)))
        return super().__contains__(key)


def noted(value: Any, path: Path, asked: set[Path]) -> Any:
    if isinstance(value, dict):
        return Noted(value, path, asked)
    if isinstance(value, list):
        return [noted(entry, (*path, number), asked) for number, entry in enumerate(value)]
    return value


def at(raw: Any, path: Path) -> Any:
    for step in path:
        raw = raw[step]
    return raw


@pytest.mark.parametrize(
    ("decode", "read", "raw"),
    [
        (POD_PAGE_DECODER, view_pod, WAITS),
        (POD_PAGE_DECODER, view_pod, manifests.pod(1, 2)),
        (POD_PAGE_DECODER, decode_pod, WAITS),
        (POD_PAGE_DECODER, decode_pod, manifests.pod(1, 2)),
        (NODE_PAGE_DECODER, view_node, OURS),
        (NODE_PAGE_DECODER, view_node, OF_A_POOL),
        (NODE_PAGE_DECODER, decode_node, OF_A_POOL),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_read_of_an_object_is_decoded_of_a_page(
    decode: Callable[[bytes], Any], read: Callable[[Any], object], raw: dict[str, Any]
) -> None:
    asked: set[Path] = set()
    found = read(noted(raw, (), asked))
    page = copy.deepcopy(raw)
    for *place, field in asked:
        at(page, tuple(place)).setdefault(field, None)
    (decoded,) = decode(json.dumps({"metadata": {}, "items": [page]}).encode())["items"]
    assert {path for path in asked if path[-1] not in at(decoded, path[:-1])} == set()
    assert read(decoded) == found
    assert len(asked) > len(("metadata", "spec", "status"))
