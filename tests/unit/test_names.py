"""Files are named by what is in them, and classes of the product have names of their own."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("shared", "functions", "infra/aws")
# `rows` and `row`, `weighing` and `weigh`, `decoding` and `decoder` are one word.
_LEAST, _ENDING = 3, 2


def modules() -> Iterator[tuple[Path, ast.Module]]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not path.stem.startswith("__") and "node_modules" not in path.parts:
                yield path, ast.parse(path.read_text(encoding="utf-8"))


def words(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name)}


def public_names(module: ast.Module) -> Iterator[str]:
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def are_one(word: str, other: str) -> bool:
    stem = max(_LEAST, min(len(word), len(other)) - _ENDING)
    return word == other or (len(word) >= stem and word[:stem] == other[:stem])


def test_each_file_has_a_public_definition_that_shares_a_word_with_its_name() -> None:
    strange = []
    for path, module in modules():
        named = set[str]().union(
            *(words(name) for name in public_names(module) if not name.startswith("_"))
        )
        if not any(are_one(word, other) for word in words(path.stem) for other in named):
            strange.append(str(path.relative_to(ROOT)))
    assert strange == []


def test_no_two_classes_of_the_product_have_one_name() -> None:
    found = Counter(
        node.name
        for _, module in modules()
        for node in module.body
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in found.items() if count > 1] == []
