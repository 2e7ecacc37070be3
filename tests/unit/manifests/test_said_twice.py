"""Files that say a key twice, or hold more than can be read in time."""

import pytest

from functions.cli.plan.reading import documents as files
from functions.cli.plan.reading.documents import InvalidDocumentError, read_documents

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers: [{name: a}]
  containers: []
"""


def refusal(content: str) -> str:
    with pytest.raises(InvalidDocumentError) as caught:
        read_documents("f", content.encode())
    return str(caught.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (POD, "document 1: line 6, column 3: says 'containers' twice; keep one of them"),
        ("---\n- {a: 1}\n---\na: 1\na: 2\n", "line 5, column 1: says 'a' twice"),
        ("{'a': 1, b: [{c: 1, c: 2}]}", "says 'c' twice"),
        ('{"name": 1, "b": [], "name": 2}', "document 1: name: is said twice; keep one of them"),
        ('{"a": {"b": 1, "b": 2}}', "document 1: b: is said twice"),
        (f"{'k' * 70}: 1\n{'k' * 70}: 2\n", f"says '{'k' * 57}...' twice"),
    ],
)
def test_an_object_that_says_a_key_twice_is_refused(content: str, words: str) -> None:
    assert words in refusal(content)


def test_merges_and_keys_that_are_no_text_are_no_repetition() -> None:
    content = "a: &a {x: 1}\nb: {<<: *a, x: 2}\nc: {<<: *a}\n? [1, 2]\n: list\n"
    text = refusal(content)
    assert "twice" not in text
    (found,) = read_documents("f", b"a: &a {x: 1}\nb: {<<: *a, x: 2}\nc: [*a, *a]\n")
    assert found.raw["b"] == {"x": 2}


def test_yaml_with_too_many_values_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_MAX_YAML_MARKS", 10)
    assert refusal("a: [" + "1, " * 11 + "]").endswith(
        "holds too many values for YAML; split the file, or write it as JSON"
    )


def test_a_character_that_is_escaped_as_two_surrogates_is_read() -> None:
    content = rb'{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "\ud83d\ude00"}}'
    (document,) = read_documents("f", content)
    assert document.raw["metadata"]["name"] == "\N{GRINNING FACE}"
