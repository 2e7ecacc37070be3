"""What can be said of the judging without a judge."""

from dataclasses import fields

from infra.aws.config import Config, read_config
from tests.infra.judges.every_option import CONTEXT, not_set
from tests.infra.judges.verdicts import Verdict, table


def test_the_context_sets_every_option_to_something_else_than_its_default() -> None:
    plain, every = Config(), read_config(CONTEXT)

    assert not_set() == set()
    assert {
        field.name
        for field in fields(Config)
        if getattr(plain, field.name) == getattr(every, field.name)
    } == set()


def test_a_judge_that_cannot_be_had_is_no_pass_and_a_disagreement_is_a_line() -> None:
    shown = table(
        {
            "one": Verdict(version="1.0", asked=3, disagreements=("a is b",)),
            "another": "mvn is missing",
            "third": Verdict(version="2", asked=1, explained=("c is d: rounded",)),
        }
    )

    assert shown.splitlines() == [
        "judge    version  asked      disagreements",
        "one      1.0      3          1",
        "another  -        NOT ASKED  -",
        "third    2        1          0 (1 explained)",
        "one: DISAGREES: a is b",
        "another: not asked: mvn is missing",
        "third: explained: c is d: rounded",
    ]
