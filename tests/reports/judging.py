"""What must hold of a plan, as rows write it, and what differs."""

import contextlib
import io
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from functions.cli.main import make_parser
from shared.instance_types.catalog import embedded_catalog
from shared.model import labels as keys
from shared.model.quantity import parse_quantity
from tests.reports.reading import Row

Raw = Mapping[str, Any]
_SHORT: Final = {
    "zone": keys.ZONE,
    "type": keys.INSTANCE_TYPE,
    "capacity": keys.CAPACITY_TYPE,
    "arch": keys.ARCH,
}
_MICROS: Final = 1_000_000
_PLACED: Final = 0
_REFUSED: Final = 2
_UNPLACED: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """A node of a plan that pods go to.

    Attributes:
        name: Of a standing node, else `new node 3`.
        pods: Names of those that it gets.
        options: What a new node may become: label and value, by option; empty where it stands.
        document: Of a new node, as `dovetail plan --output json` prints it.
    """

    name: str
    pods: tuple[str, ...]
    options: tuple[Mapping[str, str], ...] = ()
    document: Raw

    @property
    def is_new(self) -> bool:
        """Whether it is to be launched."""
        return bool(self.options)


class Answer:
    """What `dovetail plan` answered.

    Attributes:
        refused: The line that says why there is no plan, empty if there is one.
        unplaced: Why a pod has no place, by its name.
        notes: Lines on standard error.
    """

    def __init__(self, code: int, output: str, errors: str) -> None:
        self.refused = errors if code == _REFUSED else ""
        self.notes = errors
        self.document: Raw = {} if self.refused else json.loads(output)
        self.unplaced = {
            left["name"]: "; ".join(left["reasons"])
            for left in self.document.get("unschedulable", ())
        }
        assert self.refused or code == (_UNPLACED if self.unplaced else _PLACED), errors
        self.new = [
            Home(
                name=f"new node {number}",
                pods=tuple(pod["name"] for pod in node["pods"]),
                options=tuple(_labels(node, option) for option in node["options"]),
                document=node,
            )
            for number, node in enumerate(self.document.get("nodes", ()))
        ]
        self.standing = [
            Home(
                name=home["node"],
                pods=tuple(pod["name"] for pod in home["pods"]),
                document=home,
            )
            for home in self.document.get("existing", ())
        ]
        self.homes = {name: home for home in (*self.new, *self.standing) for name in home.pods}

    @property
    def pods(self) -> list[str]:
        """Names of all pods that it speaks of."""
        return sorted([*self.homes, *self.unplaced])

    def named(self, pattern: str) -> list[str]:
        """Return the names of pods that match, at least one.

        Raises:
            AssertionError: If there is none.
        """
        found = [name for name in self.pods if fnmatchcase(name, pattern)]
        assert found, f"no pod is called {pattern}: there are {', '.join(self.pods) or 'none'}"
        return found

    def placed(self, pattern: str) -> dict[str, Home]:
        """Return the nodes of the pods that match and have one, at least one.

        Raises:
            AssertionError: If there is none.
        """
        found = {name: self.homes[name] for name in self.named(pattern) if name in self.homes}
        assert found, f"{pattern}: has no place"
        return found


def _labels(node: Raw, option: Raw) -> Mapping[str, str]:
    instance_type = embedded_catalog().get(option["instance_type"])
    assert instance_type is not None
    return {
        **instance_type.labels,
        keys.ZONE: option["zone"],
        keys.CAPACITY_TYPE: option["capacity_type"],
        keys.INSTANCE_TYPE: option["instance_type"],
        "pool": node["provisioner"],
    }


def answer_to(row: Row, folder: Path) -> Answer:
    """Return what `dovetail plan` answers to a row's manifests."""
    file = folder / f"{row.name}.yaml"
    file.write_text(row.manifests, encoding="utf-8")
    chosen = [f"--set={key}={value}" for key, value in row.settings.items()]
    arguments = make_parser().parse_args(["plan", "-f", str(file), "--output=json", *chosen])
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        code = arguments.run(arguments)
    return Answer(code, output.getvalue(), errors.getvalue())


def differences(answer: Answer, expect: Raw) -> Iterator[str]:
    """Yield what does not hold, one line each.

    A pod that `unplaced` does not name must have a place, and a refusal must be expected.

    Raises:
        ValueError: If an expectation is not known.
    """
    if unknown := sorted(expect.keys() - EXPECTATIONS.keys()):
        known = ", ".join(sorted(EXPECTATIONS))
        raise ValueError(f"expect: {', '.join(unknown)}: not known; known are {known}")
    if answer.refused and "refused" not in expect:
        yield f"refused: {answer.refused}"
        return
    for key in sorted({*expect, "unplaced"}):
        try:
            yield from EXPECTATIONS[key](answer, expect.get(key, {}))
        except AssertionError as error:
            yield f"{key}: {error}"


# --- Whether there is a plan, and of which pods --------------------------------------------------


def _refused(answer: Answer, parts: Any) -> Iterator[str]:
    for part in _texts(parts):
        if part not in answer.refused:
            yield f"refused: not with {part!r}, but {answer.refused or 'not at all'}"


def _unplaced(answer: Answer, expected: Raw) -> Iterator[str]:
    """Parts of the reason; `{pods: 2, reason: part}` for so many of those that match."""
    named: dict[str, list[str]] = {}
    for pattern, wanted in expected.items():
        matching = answer.named(pattern)
        left = [name for name in matching if name in answer.unplaced]
        count, parts = len(matching), wanted
        if isinstance(wanted, dict):
            count, parts = wanted["pods"], wanted["reason"]
        if len(left) != count:
            yield f"{len(left)} of {pattern} have no place, not {count}: {', '.join(left)}"
        named.update(dict.fromkeys(left, _texts(parts)))
    for name, reason in answer.unplaced.items():
        if name not in named:
            yield f"{name} has no place: {reason}"
        for part in named.get(name, ()):
            if part not in reason:
                yield f"{name} has no place for another reason than {part!r}: {reason}"


def _pods(answer: Answer, expected: Any) -> Iterator[str]:
    """A number of all pods, or of those that match each pattern."""
    for pattern, count in (expected if isinstance(expected, dict) else {"*": expected}).items():
        found = sum(fnmatchcase(name, pattern) for name in answer.pods)
        if found != count:
            yield f"{found} pods are called {pattern}, not {count}: {', '.join(answer.pods)}"


def _notes(answer: Answer, parts: Any) -> Iterator[str]:
    for part in _texts(parts):
        if part not in answer.notes:
            yield f"no note says {part!r}: {answer.notes}"


def _no_notes(answer: Answer, parts: Any) -> Iterator[str]:
    for part in _texts(parts):
        if part in answer.notes:
            yield f"a note says {part!r}: {answer.notes}"


# --- What is bought ------------------------------------------------------------------------------


def _nodes(answer: Answer, count: int) -> Iterator[str]:
    if len(answer.new) != count:
        yield f"{len(answer.new)} new nodes, not {count}: {_all(answer)}"


def _nodes_at_most(answer: Answer, count: int) -> Iterator[str]:
    if len(answer.new) > count:
        yield f"{len(answer.new)} new nodes, more than {count}: {_all(answer)}"


def _nodes_at_least(answer: Answer, count: int) -> Iterator[str]:
    if len(answer.new) < count:
        yield f"{len(answer.new)} new nodes, fewer than {count}: {_all(answer)}"


def _price_at_most(answer: Answer, expected: Any) -> Iterator[str]:
    """Dollars an hour, or machines at their least price on demand."""
    price = answer.document["cost_micros_per_hour"]
    if isinstance(expected, dict):
        most = sum(count * _on_demand(name) for name, count in expected.items())
    else:
        most = round(expected * _MICROS)
    if price > most:
        yield f"${price / _MICROS:.4f}/h, more than ${most / _MICROS:.4f}: {_all(answer)}"


def _gap_at_most(answer: Answer, percent: float) -> Iterator[str]:
    price = answer.document["cost_micros_per_hour"]
    bound = answer.document["lower_bound_micros_per_hour"]
    gap = 100 * (price - bound) / bound
    if gap > percent:
        yield f"{gap:.2f} % above the bound, more than {percent} %"


def _types_in(answer: Answer, patterns: Any) -> Iterator[str]:
    """Patterns for all new nodes, or by pattern of pods for theirs."""
    for home, allowed in _by_home(answer, patterns):
        for option in home.options:
            name = option[keys.INSTANCE_TYPE]
            if not any(fnmatchcase(name, pattern) for pattern in allowed):
                yield f"{home.name} may become {name}, which is none of {', '.join(allowed)}"


def _types_not_in(answer: Answer, patterns: Any) -> Iterator[str]:
    for home, barred in _by_home(answer, patterns):
        for option in home.options:
            name = option[keys.INSTANCE_TYPE]
            if any(fnmatchcase(name, pattern) for pattern in barred):
                yield f"{home.name} may become {name}, which is one of {', '.join(barred)}"


def _per_node_at_most(answer: Answer, expected: Mapping[str, int]) -> Iterator[str]:
    for pattern, most in expected.items():
        for name, count in Counter(
            home.name for home in answer.placed(pattern).values() if home.is_new
        ).items():
            if count > most:
                yield f"{count} of {pattern} are on {name}, more than {most}"


def _requests(answer: Answer, expected: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """What all pods on the new nodes of these pods ask for together."""
    for pattern, amounts in expected.items():
        homes = {home.name: home for home in answer.placed(pattern).values()}
        for resource, amount in amounts.items():
            asked = [home.document["requests"].get(resource, "0") for home in homes.values()]
            if sum(map(parse_quantity, asked)) != parse_quantity(str(amount)):
                yield f"{pattern} ask for {resource} {' + '.join(asked)}, not {amount}"


def _room(answer: Answer, expected: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """What a new node has for pods and daemons: between two amounts, by a pod that it gets."""
    for pattern, amounts in expected.items():
        for home in answer.placed(pattern).values():
            for resource, (least, most) in amounts.items():
                has = str(home.document["allocatable"].get(resource, "0"))
                if not parse_quantity(least) <= parse_quantity(has) <= parse_quantity(most):
                    yield f"{home.name} has {resource} {has}, not {least} to {most}"


# --- Where pods go -------------------------------------------------------------------------------


def _together(answer: Answer, groups: Sequence[Sequence[str]]) -> Iterator[str]:
    """All pods that match any pattern of a group are on one node."""
    for group in groups:
        places = {
            name: home.name for pattern in group for name, home in answer.placed(pattern).items()
        }
        if len(set(places.values())) != 1:
            yield f"{', '.join(group)} are not together: {places}"


def _beside(answer: Answer, expected: Mapping[str, str]) -> Iterator[str]:
    """Each pod of the first pattern is on a node with at least one of the second."""
    for pattern, other in expected.items():
        there = {home.name for home in answer.placed(other).values()}
        for name, home in answer.placed(pattern).items():
            if home.name not in there:
                yield f"{name} is on {home.name}, where no {other} is"


def _apart(answer: Answer, groups: Sequence[Sequence[str]]) -> Iterator[str]:
    """No two pods that match a pattern of a group are on one node."""
    for group in groups:
        found: dict[str, list[str]] = defaultdict(list)
        for pattern in group:
            for name, home in answer.placed(pattern).items():
                found[home.name].append(name)
        for place, names in found.items():
            if len(names) > 1:
                yield f"{', '.join(names)} are all on {place}"


def _zones(answer: Answer, expected: Mapping[str, Any]) -> Iterator[str]:
    yield from _labelled(answer, {name: {"zone": zones} for name, zones in expected.items()})


def _pools(answer: Answer, expected: Mapping[str, Any]) -> Iterator[str]:
    yield from _labelled(answer, {name: {"pool": pools} for name, pools in expected.items()})


def _labelled(answer: Answer, expected: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Each option of the new nodes of these pods has one of the values."""
    for pattern, wanted in expected.items():
        for name, home in answer.placed(pattern).items():
            if not home.is_new:
                yield f"{name} is on the standing node {home.name}"
            for written, values in wanted.items():
                key = _SHORT.get(written, written)
                found = {option.get(key, "") for option in home.options}
                if not found <= set(_texts(values)):
                    yield f"{name}: {key} may be {', '.join(sorted(found))}, not {values} alone"


def _shares(answer: Answer, expected: Mapping[str, Mapping[str, Sequence[int]]]) -> Iterator[str]:
    """How many of the new pods are in each domain, from the fewest to the most."""
    for pattern, wanted in expected.items():
        for written, counts in wanted.items():
            found: Counter[str] = Counter()
            for name, home in answer.placed(pattern).items():
                key = _SHORT.get(written, written)
                values = {option.get(key, "") for option in home.options} or {home.name}
                if written == "host":
                    values = {home.name}
                if len(values) != 1:
                    yield f"{name}: {key} may be {', '.join(sorted(values))}"
                found[min(values)] += 1
            if sorted(found.values()) != sorted(counts):
                yield f"{pattern} by {written}: {dict(found)}, not {sorted(counts)}"


def _on(answer: Answer, expected: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The pods that a standing node gets, all of them."""
    for node, patterns in expected.items():
        found = sorted(name for home in answer.standing if home.name == node for name in home.pods)
        wanted = sorted({name for pattern in patterns for name in answer.named(pattern)})
        if found != wanted:
            yield f"{node} gets {found}, not {wanted}"


Expectation = Callable[[Answer, Any], Iterator[str]]
EXPECTATIONS: Final[Mapping[str, Expectation]] = {
    "apart": _apart,
    "beside": _beside,
    "gap_at_most": _gap_at_most,
    "labels": _labelled,
    "no_notes": _no_notes,
    "nodes": _nodes,
    "nodes_at_least": _nodes_at_least,
    "nodes_at_most": _nodes_at_most,
    "notes": _notes,
    "on": _on,
    "per_node_at_most": _per_node_at_most,
    "pods": _pods,
    "pools": _pools,
    "price_at_most": _price_at_most,
    "refused": _refused,
    "requests": _requests,
    "room": _room,
    "shares": _shares,
    "together": _together,
    "types_in": _types_in,
    "types_not_in": _types_not_in,
    "unplaced": _unplaced,
    "zones": _zones,
}


def _texts(values: Any) -> list[str]:
    return [str(value) for value in values] if isinstance(values, list) else [str(values)]


def _by_home(answer: Answer, expected: Any) -> Iterator[tuple[Home, list[str]]]:
    if not isinstance(expected, dict):
        yield from ((home, _texts(expected)) for home in answer.new)
        return
    for pattern, values in expected.items():
        homes = {home.name: home for home in answer.placed(pattern).values()}
        yield from ((home, _texts(values)) for home in homes.values())


def _on_demand(name: str) -> int:
    instance_type = embedded_catalog().get(name)
    assert instance_type is not None, f"{name}: no such type"
    prices = [
        offering.price_micros_per_hour
        for offering in instance_type.offerings
        if offering.capacity_type.value == "on-demand"
    ]
    return min(prices)


def _kinds(home: Home) -> str:
    kinds = sorted({option[keys.INSTANCE_TYPE] for option in home.options})
    return f"{home.name} {', '.join(kinds[:3])}".strip()


def _all(answer: Answer) -> str:
    return "; ".join(f"{_kinds(home)}: {len(home.pods)} pods" for home in answer.new)
