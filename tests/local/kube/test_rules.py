"""The part of CEL that rules in `infra/cluster` use."""

from typing import Any

import pytest

from infra.local.kube.schemas.cel import CelError, compile_rule

SELF: dict[str, Any] = {
    "name": "web-1",
    "size": 3,
    "items": [{"k": "a", "v": ["1", "2"]}, {"k": "b", "v": []}],
    "labels": {"x": "1", "y-z": "2"},
    "none": None,
}


@pytest.mark.parametrize(
    "rule",
    [
        "self.size == 3 && self.size != 4 && self.size <= 3 && !(self.size < 3)",
        'self.size > 3 || self.size >= 3 && self.name == "web-1"',
        "self.name.startsWith('web') && self.name.matches('^[a-z]+-[0-9]$')",
        "!self.name.matches('&& !')",
        "has(self.name) && !has(self.absent) && !has(self.none) && has(self.labels.x)",
        "'x' in self.labels && !('w' in self.labels) && self.size in [1, 2, 3]",
        "!has(self.absent) || self.absent == 1",
        "size(self.items) == 2 && size('äö') == 2",
        "self.items.all(i, has(i.k)) && self.items.exists(i, size(i.v) == 0)",
        "self.labels.all(key, key in ['x', 'y-z'])\n  && !self.labels.exists(key, key == 'w')",
        "self.items.all(i, i.v.all(v, v in ['1', '2'] && i.k == 'a'))",
        "has(self.absent) ? self.absent == 1 : self.size == 3 ? true : false",
        "self.items.all(i, i.k == 'b' ? size(i.v) == 0 : i.v.size() == 2)",
        "self.name.find('^[^-]+') == 'web' && self.name.find('x') == '' && self.name.endsWith('1')",
        "self.name.split('-')[0] in ['web'] && self.items[0].k == 'a' && self.labels['x'] == '1'",
        "self.items.filter(i, has(i.v) ? i.v.size() == 2 : false).size() <= 1",
    ],
)
def test_a_true_rule_holds(rule: str) -> None:
    keeps = compile_rule(rule)
    assert keeps(SELF)
    assert not compile_rule(f"!({rule})")(SELF)


@pytest.mark.parametrize(
    "rule",
    [
        "self.absent == 1",
        "self.name < 1",
        "1 in 1",
        "'a'.matches('(')",
        "size(1) == 1",
        "has(self.name.k)",
        "self.items[2].k == 'a'",
        "self.name.split('-')[2] == 'a'",
    ],
)
def test_a_rule_that_cannot_be_decided_is_an_error(rule: str) -> None:
    with pytest.raises(CelError):
        compile_rule(rule)(SELF)


@pytest.mark.parametrize(
    "rule",
    [
        "self.a ==",
        "self..a",
        "(1",
        "f(1)",
        "has(1)",
        "'a",
        "1 2",
        "[1, 2].all(i)",
        "size()",
        "#",
        "1 ? 2",
        "1 ? 2, 3 : 4",
        "(1 ? 2) : 3",
    ],
)
def test_a_malformed_rule_does_not_compile(rule: str) -> None:
    with pytest.raises(CelError):
        compile_rule(rule)


@pytest.mark.parametrize(
    "rule",
    [
        "self == oldSelf",
        "other == 1",
        "self.size + 1 == 4",
        "1 < self.size < 4",
        "self.items.map(i, i.k) == ['a']",
        "self.name == 'a\\n'",
        "~self.size == 1",
        "not self.size",
        "1 if self.size == 3 else 0",
        "self.items[0:1].size() == 1",
        "self.size is 3",
    ],
)
def test_a_rule_beyond_this_part_is_refused(rule: str) -> None:
    with pytest.raises(CelError):
        compile_rule(rule)
