"""Of pairs drawn as people publish them nine in ten are taken unchanged, mistakes included."""

from functions.cli.plan.reading.documents import Document
from tests.corpus.drawn import PAIRS, SEED, pairs
from tests.corpus.judging import Answer, judge_documents

LEAST = 54


def answers(seed: int) -> list[Answer]:
    return [
        judge_documents([Document(where=f"pair {number}", raw=raw) for raw in pair])
        for number, pair in enumerate(pairs(seed))
    ]


def test_at_least_54_of_60_pairs_are_accepted_unchanged() -> None:
    found = answers(SEED)
    refused = [answer.said for answer in found if answer.refusals]
    assert len(found) == PAIRS
    assert len(refused) <= PAIRS - LEAST, "\n".join(refused)


def test_each_refusal_of_a_pair_names_field_and_remedy() -> None:
    problems = [problem for answer in answers(SEED) for problem in answer.refusals]
    assert problems
    assert all(problem.field and problem.remedy for problem in problems)


def test_the_same_seed_draws_the_same_pairs() -> None:
    assert pairs(SEED) == pairs(SEED)
    assert pairs(SEED) != pairs(SEED + 1)
