"""Selectors, as people write them."""

from shared.model.ec2.selectors import SelectorTerm, describe_selector, tagged


def test_a_selector_is_described_term_by_term() -> None:
    terms = (
        *tagged("team"),
        SelectorTerm(ids=("ami-1", "ami-2")),
        SelectorTerm(tags={"b": ("2",), "a": ("1", "x")}, names=("n*",), owners=("self",)),
        SelectorTerm(parameters=("/mine",)),
    )
    assert describe_selector(terms) == (
        "team=* or id ami-1,ami-2 or a=1,x, b=2, name n*, owner self or ssmParameter /mine"
    )
    assert describe_selector(()) == "(none given)"
