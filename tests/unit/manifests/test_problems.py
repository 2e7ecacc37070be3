"""Sections of manifests: a value of the wrong type is refused, and its default is read."""

from shared.manifests.problems import FieldProblem, Section


def test_a_value_of_another_type_is_refused() -> None:
    problems: list[FieldProblem] = []
    section = Section({"name": 3, "suspend": "yes"}, "spec", problems)

    assert (section.text("name", "default"), section.flag("suspend")) == ("default", None)
    assert [str(problem) for problem in problems] == [
        "spec.name: 3: write a string, in quotes if it looks like a number",
        "spec.suspend: 'yes': write true or false, without quotes",
    ]
