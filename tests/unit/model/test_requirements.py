"""Requirements as manifests write them and people read them."""

import pytest

from shared.model.requirements import Operator, Requirement, Requirements
from tests.builders import needs


@pytest.mark.parametrize(
    ("operator", "values", "allowed", "refused"),
    [
        ("In", ["a", "b"], ["a", "b"], ["c", None]),
        ("NotIn", ["a"], ["b", None], ["a"]),
        ("Exists", [], ["a", ""], [None]),
        ("DoesNotExist", [], [None], ["a", ""]),
        ("Gt", ["4"], ["5", "05", "100"], ["4", "-7", "five", None]),
        ("Lt", ["4"], ["3", "-7"], ["4", "5", "", None]),
    ],
)
def test_each_operator_allows_what_kubernetes_says(
    operator: str, values: list[str], allowed: list[str | None], refused: list[str | None]
) -> None:
    one = Requirement.parse("k", operator, values)
    assert all(one.allows(value) for value in allowed)
    assert not any(one.allows(value) for value in refused)


@pytest.mark.parametrize(
    ("operator", "values", "text"),
    [
        ("In", [], "operator In needs at least one value"),
        ("NotIn", [], "operator NotIn needs at least one value"),
        ("Exists", ["a"], "operator Exists takes no values"),
        ("DoesNotExist", ["a"], "operator DoesNotExist takes no values"),
        ("Gt", ["1", "2"], "operator Gt needs exactly one integer, not 2 values"),
        ("Lt", ["many"], "operator Lt needs exactly one integer, not 'many'"),
        ("Lt", [], "operator Lt needs exactly one integer"),
        ("Like", ["a"], "operator 'Like' is unknown; use one of In, NotIn, Exists"),
    ],
)
def test_a_wrong_operator_or_number_of_values_is_named(
    operator: str, values: list[str], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        Requirement.parse("k", operator, values)


@pytest.mark.parametrize(
    ("operator", "allowed", "refused"),
    [("Gte", ["4", "5"], ["3", None]), ("Lte", ["4", "3"], ["5", None])],
)
def test_node_pools_have_bounds_that_are_allowed_themselves(
    operator: str, allowed: list[str | None], refused: list[str | None]
) -> None:
    bound = Requirement.parse("k", operator, ["4"], tuple(Operator))
    assert all(bound.allows(value) for value in allowed)
    assert not any(bound.allows(value) for value in refused)
    with pytest.raises(ValueError, match=f"operator '{operator}' is unknown"):
        Requirement.parse("k", operator, ["4"])


def test_old_names_of_labels_are_normalised() -> None:
    assert Requirement.parse("beta.kubernetes.io/arch", "Exists").key == "kubernetes.io/arch"
    assert Requirement.of("failure-domain.beta.kubernetes.io/zone", "a").key == (
        "topology.kubernetes.io/zone"
    )


@pytest.mark.parametrize("text", ["9223372036854775808", "9" * 64, "٣", "-", "--1", "1.0", "+1"])
def test_what_kube_scheduler_cannot_read_as_an_integer_is_within_no_bounds(text: str) -> None:
    assert not Requirement.parse("k", "Gt", ["-9223372036854775808"]).allows(text)


@pytest.mark.parametrize(
    ("requirement", "other"),
    [
        (("Gt", "4"), ("Lt", "5")),
        (("Gt", str(2**63 - 1)), ("Exists",)),
        (("Lt", str(-(2**63))), ("Exists",)),
        (("In", "a"), ("In", "b")),
        (("In", "a"), ("NotIn", "a")),
        (("In", "a"), ("DoesNotExist",)),
        (("Exists",), ("DoesNotExist",)),
        (("In", "3"), ("Gt", "3")),
    ],
)
def test_contradictions_are_empty(requirement: tuple[str, ...], other: tuple[str, ...]) -> None:
    met = needs("k", *requirement).merge(needs("k", *other))
    assert met.empty_keys() == ("k",)
    assert not met.items[0].has_value()


def test_does_not_exist_is_not_empty_and_has_no_value() -> None:
    absent = Requirement.parse("k", "DoesNotExist")
    assert not absent.is_empty()
    assert not absent.has_value()
    assert absent.intersect(Requirement.parse("k", "NotIn", ["a"])) == absent


@pytest.mark.parametrize(
    ("requirement", "text"),
    [
        (Requirement.of("k", "b", "a"), "k in [a, b]"),
        (Requirement.parse("k", "DoesNotExist"), "k absent"),
        (Requirement(key="k", complement=False), "k has no possible value"),
        (Requirement.parse("k", "Exists"), "k exists"),
        (Requirement(key="k", absent=True), "k any or absent"),
        (Requirement.parse("k", "NotIn", ["b", "a"]), "k not in [a, b]"),
        (
            Requirement(key="k", values=frozenset("3"), minimum=1, maximum=5),
            "k not in [3] and >= 1 and <= 5",
        ),
    ],
)
def test_a_requirement_describes_itself(requirement: Requirement, text: str) -> None:
    assert requirement.describe() == text


def test_requirements_of_the_same_key_are_intersected_and_sorted() -> None:
    found = Requirements.of(
        [
            Requirement.of("z", "1"),
            Requirement.of("a", "1", "2"),
            Requirement.parse("a", "NotIn", ["1"]),
        ]
    )
    assert [requirement.describe() for requirement in found] == ["a in [2]", "z in [1]"]
    assert found.get("z") == Requirement.of("z", "1")
    assert found.get("b") is None
    assert found
    assert not Requirements()


def test_labels_become_requirements_that_only_they_satisfy() -> None:
    wanted = Requirements.from_labels({"a": "1", "b": "2"})
    assert wanted.allow_labels({"a": "1", "b": "2", "c": "3"})
    assert wanted.first_refusing({"a": "1", "b": "3"}) == Requirement.of("b", "2")
    assert wanted.first_refusing({"b": "2"}) == Requirement.of("a", "1")
