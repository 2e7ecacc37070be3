import json
from typing import Any

import pytest

from functions.cli.plan.reading import yaml_text
from functions.cli.plan.reading.documents import InvalidDocumentError, read_documents


def raws(content: str) -> list[Any]:
    return [document.raw for document in read_documents("f", content.encode())]


def test_documents_and_lists_are_taken_apart_and_numbered() -> None:
    content = "a: 1\n---\n---\nkind: List\nitems: [{b: 2}, {c: 3}]\n---\nd: 4\n"
    found = read_documents("f", content.encode())
    assert [document.where for document in found] == [
        "f: document 1",
        "f: document 3, items[0]",
        "f: document 3, items[1]",
        "f: document 4",
    ]


def test_items_of_a_typed_list_get_its_kind() -> None:
    listed = {"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "a"}}]}
    (found,) = read_documents("f", json.dumps(listed).encode())
    assert (found.kind, found.api_version, found.name) == ("Pod", "v1", "a")
    assert found.namespace == "default"
    assert raws("{kind: PodList, items: null}") == []


def test_json_that_is_several_documents_is_read_as_yaml() -> None:
    assert raws('{"a": 1}\n---\n{"b": 2}') == [{"a": 1}, {"b": 2}]


def test_a_byte_order_mark_is_no_hindrance() -> None:
    assert [document.raw for document in read_documents("f", b"\xef\xbb\xbfa: 1")] == [{"a": 1}]


def test_aliases_and_merges_within_bounds_are_read() -> None:
    content = "a: &a {x: 1}\nb: {<<: *a, z: 2}\nc: [*a, *a]\n"
    assert raws(content) == [{"a": {"x": 1}, "b": {"x": 1, "z": 2}, "c": [{"x": 1}, {"x": 1}]}]


def test_keys_are_strings_as_in_json() -> None:
    content = "a: {1: b, null: d, off: e}\nf: [{2.5: 3, true: 4}]\n"
    assert raws(content) == [
        {"a": {"1": "b", "null": "d", "false": "e"}, "f": [{"2.5": 3, "true": 4}]}
    ]


def test_many_brackets_side_by_side_are_not_deep() -> None:
    (found,) = raws("a: [" + "[], " * 5000 + "]")
    assert len(found["a"]) == 5000


def test_keys_that_nest_deep_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(_: str) -> object:
        raise RecursionError

    monkeypatch.setattr(yaml_text, "_LOADER", exhausted)
    with pytest.raises(InvalidDocumentError, match="is not YAML: is nested too deep"):
        read_documents("f", b"a: 1")


def test_long_or_invalid_value_is_reported_in_short() -> None:
    with pytest.raises(InvalidDocumentError) as refused:
        read_documents("f", ("x" * 500).encode())
    assert str(refused.value) == (
        f"f: document 1: {'x' * 57}...: must be an object with apiVersion and kind"
    )
    with pytest.raises(InvalidDocumentError, match=r"'a\\nb': must be an object"):
        read_documents("f", b'"a\\nb"')
