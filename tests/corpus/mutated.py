"""NodePools and EC2NodeClasses with one or two changes, by a seed: what people might get wrong."""

import copy
from collections.abc import Iterator
from random import Random
from typing import Any, Final

from functions.cli.plan.reading.documents import Document
from tests.corpus.drawn import pairs
from tests.corpus.judging import judge_documents

Path = tuple[str | int, ...]
_SEED: Final = 5
_ODD: Final[tuple[Any, ...]] = (
    *(
        "",
        " ",
        "x" * 64,
        "x" * 300,
        "-a",
        "a_b",
        "A.b/c",
        "a/b/c",
        "*",
        "0",
        "-1",
        "101%",
        "1.5",
        "1h",
    ),
    *("Never", "720h", "1d", "30s", "true", "10Gi", "x,y", "0 9 * * 7", "@daily", "ami-1", "sg-1"),
    *(0, 1, -1, 2, 51, 101, 10**6, 10**12, 1.5, True, False),
)
_EMPTY: Final[tuple[Any, ...]] = ({}, [], "", 0)
_PER_DOCUMENT: Final = 0.3


def sound() -> list[dict[str, Any]]:
    """Return documents without a mistake, of no other provider.

    Until v1.15 of Karpenter `disruption` needs consolidateAfter.
    """
    found = []
    for pool, node_class in pairs():
        for raw in (pool, node_class):
            answer = judge_documents([Document(where="drawn", raw=raw)])
            lacking = "consolidateAfter" not in raw["spec"].get(
                "disruption", {"consolidateAfter": 0}
            )
            if answer.documents and not answer.refusals and not lacking:
                found.append(raw)
    return found


def mutated(count: int, seed: int = _SEED) -> Iterator[dict[str, Any]]:
    """Yield so many documents, each with one change, sometimes two."""
    random = Random(seed)
    originals = sound()
    for number in range(count):
        document = copy.deepcopy(random.choice(originals))
        for _ in range(1 + (random.random() < _PER_DOCUMENT)):
            _change(random, document, originals)
        document["metadata"]["name"] = f"changed-{number}"
        yield document


def _change(random: Random, document: dict[str, Any], originals: list[dict[str, Any]]) -> None:
    path = random.choice(list(_paths(document["spec"], ("spec",))))
    holder, key = _holder(document, path), path[-1]
    match random.randrange(6):
        case 0:
            del holder[key]
        case 1:
            holder[key] = copy.deepcopy(random.choice(_ODD))
        case 2:
            holder[key] = copy.deepcopy(random.choice(_EMPTY))
        case 3:
            _repeat(holder, key)
        case 4:
            value = holder[key]
            holder[key] = [value] if not isinstance(value, list) else {"key": "a"}
        case _:
            other = random.choice([raw for raw in originals if raw["kind"] == document["kind"]])
            holder[key] = copy.deepcopy(_at(other, path, holder[key]))


def _repeat(holder: Any, key: Any) -> None:
    if isinstance(holder, list):
        holder.append(copy.deepcopy(holder[key]))
    else:
        holder[f"{key}x"] = copy.deepcopy(holder[key])


def _paths(value: Any, path: Path) -> Iterator[Path]:
    """Yield the path of each value below one."""
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, member in entries:
        yield (*path, key)
        if isinstance(member, (dict, list)):
            yield from _paths(member, (*path, key))


def _holder(document: Any, path: Path) -> Any:
    for key in path[:-1]:
        document = document[key]
    return document


def _at(document: Any, path: Path, default: Any) -> Any:
    try:
        return _holder(document, path)[path[-1]]
    except (LookupError, TypeError):
        return default
