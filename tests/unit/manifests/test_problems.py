"""Sections of manifests: a value of the wrong type is refused, and its default is read."""

from shared.manifests.problems import FieldProblem, Section
from shared.model.resources import Resources


def test_a_value_of_another_type_is_refused() -> None:
    problems: list[FieldProblem] = []
    section = Section({"name": 3, "suspend": "yes"}, "spec", problems)

    assert (section.text("name", "default"), section.flag("suspend")) == ("default", None)
    assert [str(problem) for problem in problems] == [
        "spec.name: 3: write a string, in quotes if it looks like a number",
        "spec.suspend: 'yes': write true or false, without quotes",
    ]


def test_null_is_an_empty_string_in_a_map_and_nothing_among_resources() -> None:
    problems: list[FieldProblem] = []
    metadata = Section({"labels": {"a": None, "b": "c"}}, "metadata", problems)
    limits = Section({"cpu": None, "memory": 1}, "limits", problems)

    assert metadata.text_map("labels") == {"a": "", "b": "c"}
    assert limits.resources() == Resources.of(memory=1)
    assert problems == []
