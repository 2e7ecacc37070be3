"""Answers that are kept by what they depend on."""

from shared.planning.rules.recent import RecentCache


def asked(recent: RecentCache[object, object], *questions: object) -> list[object]:
    """Return the questions that were not answered from what is kept."""
    computed: list[object] = []

    def answer(question: object) -> object:
        computed.append(question)
        return str(question)

    for question in questions:
        assert recent.get(question, answer) == str(question)
    return computed


def test_an_equal_question_is_answered_once() -> None:
    assert asked(RecentCache(2), {"a": 1}, {"a": 1}, {"a": 2}) == [{"a": 1}, {"a": 2}]


def test_those_asked_for_last_are_kept() -> None:
    assert asked(RecentCache(2), "a", "b", "a", "c", "a", "b") == ["a", "b", "c", "b"]
