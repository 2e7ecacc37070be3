"""Large files are read piece by piece, with what reading them at once would give."""

import io
import json

import pytest

from functions.cli.plan.reading import documents as files
from functions.cli.plan.reading import json_pieces
from functions.cli.plan.reading.documents import Document, InvalidDocumentError, stream_documents

PODS = [{"kind": "Pod", "metadata": {"name": name}} for name in ("a", "b\u00e9", "\U0001f600")]


@pytest.fixture(autouse=True)
def _pieces(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    monkeypatch.setattr(files, "AT_ONCE_BYTES", 50)
    monkeypatch.setattr(files, "_PIECE_BYTES", getattr(request, "param", 7))


def read(content: str | bytes) -> list[Document]:
    raw = content.encode() if isinstance(content, str) else content
    assert len(raw) > 50
    return list(stream_documents("f", io.BytesIO(raw)))


def listed(**fields: object) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "List", "metadata": {"a": [1, {}]}, **fields}


@pytest.mark.parametrize("_pieces", [1, 2, 3, 11, 1000], indirect=True)
@pytest.mark.parametrize("indent", [None, 4])
@pytest.mark.parametrize("escape", [True, False])
def test_items_are_the_same_wherever_the_text_is_cut(indent: int | None, *, escape: bool) -> None:
    content = json.dumps(listed(items=PODS), indent=indent, ensure_ascii=escape) + "\n"
    found = read(content)
    assert [document.raw for document in found] == PODS
    assert [document.where for document in found] == [
        f"f: document 1, items[{number}]" for number in range(3)
    ]


@pytest.mark.parametrize("fields", [("items", "kind", "apiVersion"), ("kind", "items")])
def test_items_of_a_typed_list_get_its_kind_wherever_it_says_it(fields: tuple[str, ...]) -> None:
    whole: dict[str, object] = {
        "apiVersion": "v1",
        "kind": "PodList",
        "items": [{"spec": {}}, {"spec": {"a": "b" * 50}}],
    }
    found = read(json.dumps({field: whole[field] for field in fields}))
    assert [document.kind for document in found] == ["Pod", "Pod"]


def test_empty_lists_are_read() -> None:
    assert read(json.dumps(listed(items=[], note="b" * 50))) == []
    assert read(json.dumps(listed(items=None, note="b" * 50))) == []


LONG = '{"kind": "List",\n "items": [{"kind": "Pod", "metadata": {"name": "a"}}'
WRONG = {
    "cut off": (LONG, "document 1, items[0]: line 2, column 54: is not JSON: expected , or ]"),
    "item": (f"{LONG}, {{]", "items[0]: line 2, column 58: is not JSON: expecting property name"),
    "key": (f"{LONG}], 3}}", "items[0]: line 2, column 57: is not JSON: expected a key"),
    "twice": (f'{LONG}, {{"b": 1, "b": 2}}]}}', "items[0]: b: is said twice; keep one of them"),
    "field twice": (f'{LONG}], "kind": 1}}', "is not JSON: 'kind' is said twice, keep one of them"),
    "no object": (f"{LONG}, 3]}}", "document 1, items[1]: 3: must be an object with apiVersion"),
    "two documents": (f"{LONG}]}} {{}}", "and not one List of JSON; split the file"),
    "no fields": (f"{{{' ' * 50}}}", "document 1: kind: is larger than"),
    "no list": (LONG.replace("List", "Else") + "]}", "document 1: kind: Else: is larger than"),
    "items": (json.dumps(listed(items="b" * 50)), "document 1: kind: List: is larger than"),
    "one object": (json.dumps(listed(note="b" * 50)), "document 1: kind: List: is larger than"),
    "deep": ('{"a": ' + "[" * 100_000, "is not JSON: is nested too deep"),
    "empty": ("{" + " " * 50, "document 1: line 1, column 52: is not JSON: expected a key"),
    "surrogate": (
        f'{LONG}, {{"kind": "Pod", "metadata": {{"name": "\\ud83d"}}}}]}}',
        "document 1, items[1]: metadata.name: '\\ud83d': holds half of a surrogate pair",
    ),
    "field": (f'{LONG}], "a": "\\ud83d"}}', "document 1: a: '\\ud83d': holds half of a surrogate"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_in_a_large_list_is_said_with_its_place(case: str) -> None:
    content, expected = WRONG[case]
    with pytest.raises(InvalidDocumentError) as refused:
        read(content)
    assert expected in str(refused.value)


def test_a_value_and_a_file_have_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_pieces, "MAX_VALUE", 60)
    with pytest.raises(InvalidDocumentError, match="is a value of more than 0 MiB"):
        read(f'{LONG}, {{"a": "{"b" * 200}"}}]}}')
    monkeypatch.setattr(files, "MAX_JSON_BYTES", 60)
    with pytest.raises(InvalidDocumentError, match="f: has more than 0 MiB; split the file"):
        read(LONG + " " * 40)


def test_bytes_that_are_no_text_are_refused_wherever_they_are() -> None:
    with pytest.raises(InvalidDocumentError, match="f: is not UTF-8 text"):
        read(LONG.encode() + b"\xff")


YAML = """\
# first
---
a: 1
---
---
b: |
  ---
  x
...
%YAML 1.1
---
kind: List
items: [{c: 2}]
"""


@pytest.mark.parametrize("_pieces", [1, 5, 1000], indirect=True)
def test_documents_of_yaml_keep_their_numbers(
    _pieces: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = read(YAML)
    assert [(document.where, document.raw) for document in found] == [
        ("f: document 1", {"a": 1}),
        ("f: document 3", {"b": "---\nx\n"}),
        ("f: document 4, items[0]", {"c": 2}),
    ]


@pytest.mark.parametrize("_pieces", [1, 1000], indirect=True)
def test_wrong_yaml_is_said_with_its_line_in_the_file() -> None:
    with pytest.raises(InvalidDocumentError, match="document 5: line 15, column 5: is not YAML"):
        read(f"{YAML}---\na: b: c\n")


def test_a_document_of_yaml_has_a_largest_size() -> None:
    with pytest.raises(InvalidDocumentError, match="f: a document has more than 0 MiB; split it"):
        read(f"a: 1\n---\nb: {'c' * 60}\n")
