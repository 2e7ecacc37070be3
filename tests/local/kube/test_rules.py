"""The CEL subset."""

from typing import Any

import pytest

from infra.local.kube.schemas.cel import CelError, compile_rule

SELF: dict[str, Any] = {
    "name": "web-1",
    "size": 3,
    "half": 0.5,
    "on": True,
    "items": [{"k": "a", "v": ["1", "2"]}, {"k": "b", "v": []}],
    "labels": {"x": "1", "y-z": "2"},
    "none": None,
}


def run(rule: str, **names: Any) -> Any:
    return compile_rule(rule).run({"self": SELF, **names})


@pytest.mark.parametrize(
    "rule",
    [
        "self.size == 3 && self.size != 4 && self.half < 1",
        "self.size > 2 && self.size >= 3 && self.size <= 3 && !(self.size < 3)",
        "1 + 2 * 3 == 7 && (1 + 2) * 3 == 9 && 7 / 2 == 3 && -7 / 2 == -3 && -7 % 2 == -1",
        "self.name.startsWith('web') && self.name.endsWith(\"1\") && self.name.contains('b-')",
        "self.name.matches('^[a-z]+-[0-9]$') && self.name.matches(r'\\d')",
        "has(self.name) && !has(self.absent) && !has(self.none) && has(self.labels.x)",
        "'x' in self.labels && !('w' in self.labels) && self.size in [1, 2, 3]",
        "self.labels['y-z'] == '2' && self.labels.y__dash__z == '2'",
        "size(self.items) == 2 && self.items.size() == 2 && size('äö') == 2",
        "self.items.all(i, has(i.k)) && self.items.exists(i, i.v.size() == 0)",
        "self.items.exists_one(i, i.k == 'a') && self.labels.all(k, self.labels[k] != '')",
        "self.items.map(i, i.k) == ['a', 'b'] && self.items.filter(i, i.k == 'b').size() == 1",
        "self.items.map(i, i.k == 'a', i.v.size()) == [2]",
        "self.items[0].v[1] == '2' && int(self.items[0].v[1]) == 2 && double('1.5') == 1.5",
        "self.on ? true : self.absent",
        "self.absent == 1 || true",
        "!(self.absent == 1 && false)",
        "self.items.exists(i, i.v[0] == '1')",
        "true != 1 && null == self.none && {'a': 1}.a == 1 && 0x10 == 16 && 2u == 2",
        "duration('1h30m') > duration('5400s') || duration('1h30m') == duration('90m')",
        "'a,b'.split(',').join('-') == 'a-b' && ' a '.trim().upperAscii() == 'A'",
        "[1, 2, 2].isSorted() && [1, 2].sum() == 3 && [4, 2].max() == 4 && 'abc'.indexOf('c') == 2",
        "'abc'.substring(1) == 'bc' && 'abc'.replace('b', 'x') == 'axc' && string(1) == '1'",
    ],
)
def test_a_true_rule_holds(rule: str) -> None:
    assert run(rule) is True


@pytest.mark.parametrize(
    "rule",
    [
        "self.absent == 1",
        "self.name < 1",
        "self.name + 1 == 2",
        "self.size && true",
        "1 / 0 == 1",
        "self.items[7].k == 'a'",
        "int('x') == 1",
        "self.items.all(i, i.v[0] == '1')",
        "size(1) == 1",
        "1 in 1",
        "'a'.matches('(')",
        "duration('soon') == duration('1s')",
    ],
)
def test_a_rule_that_cannot_be_decided_is_an_error(rule: str) -> None:
    with pytest.raises(CelError):
        run(rule)


@pytest.mark.parametrize(
    "rule",
    ["self.a ==", "self..a", "(1", "f(1)", "has(1)", "'a", "1 2", "[1, 2].all(i)", "size()", "#"],
)
def test_a_malformed_rule_does_not_compile(rule: str) -> None:
    with pytest.raises(CelError):
        compile_rule(rule)


def test_a_rule_knows_whether_it_compares_with_the_former_state() -> None:
    assert compile_rule("self == oldSelf").uses_old
    assert not compile_rule("self.oldSelf == 1").uses_old
    assert run("self.size >= oldSelf.size", oldSelf={"size": 2}) is True
