"""Prints how large, how deep and how plain the code is: a table of figures, each with its goal.

python -m tools.house             # the figures
python -m tools.house --idioms    # each place where a text is not plain English, by idiom
python -m tools.house --bars      # fails when a figure that `make check` holds is over its bar
"""

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Final

import grimp

ROOT: Final = Path(__file__).resolve().parents[1]
# How the first line of a manifest begins that a command makes.
MADE_BY: Final = "# Made by `make "
PRODUCT: Final = ("shared/", "functions/", "infra/aws/")
DECIDING: Final = ("shared.scheduling", "shared.packing", "shared.planning")
TIMER: Final = "functions.emptiness.handler"
# The most lines that the function of a timer may load: they are most of its cold start.
TIMER_LINES = 13_900
_NOT_CODE: Final = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}

# Words that the documentation of Kubernetes and of AWS would not use, with what to write.
IDIOMS: Final = {
    r"\bwho(m|ever|mever)\b": "name the subject: a pod, a node, the planner",
    r"\b(nobody|somebody|anybody|everybody)\b": "name the subject",
    r"\b(given?|gives|giving) (up|away)\b": "abandon, terminate, remove",
    r"\b(take|takes|took|taken|taking) back\b": "undo",
    r"\blet(s|ting)? (it |them |the Node |the node )?go\b": "remove the finalizer",
    r"\b(speaks?|spoken|speaking) (of|for)\b": "report, describe",
    r"\bnought\b": "zero",
    r"\bstands? (in|on|at|for|beside)\b": "is in, runs on",
    r"\bof (ours|theirs|our own|our making)\b": "Dovetail's, the user's",
    r"\bpassed over\b": "skipped",
    r"\bdear(er|est)?\b": "expensive",
    r"\bmischief\b": "fault injection",
    r"\bhappenings?\b": "Kubernetes Event",
    r"\b(census|the judge|dealing|dealer|wares?|applicants?)\b": "see the glossary",
    r"\btold? of\b": "reported",
    r"\bwhat (people|users) are told\b": "Events and conditions",
}
_ANY_IDIOM: Final = re.compile("|".join(IDIOMS), re.IGNORECASE)
_NAMED_ONE: Final = re.compile(r"\bfor\s+one\b")
# Where one literal ends and the next begins that it is joined with.
_JOINT: Final = re.compile(r"""["']\s*\n\s*[a-zA-Z]*["']""")


@dataclass(frozen=True)
class Source:
    """One tracked Python file."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """Return its syntax, which takes long to read."""
        return ast.parse(self.text)

    @property
    def module(self) -> str:
        """Return its dotted name."""
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def tracked(pattern: str) -> list[str]:
    """Return the paths of tracked files that match, in order."""
    words = ["git", "-C", str(ROOT), "ls-files", pattern]
    listed = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split("\n")
    return [path for path in listed if path and (ROOT / path).exists()]


@cache
def sources() -> tuple[Source, ...]:
    """Return all tracked Python files that are written by hand."""
    return tuple(
        Source(path, (ROOT / path).read_text(encoding="utf-8")) for path in tracked("*.py")
    )


def logical_lines(source: Source) -> int:
    """Return the number of statements' lines: without blanks, comments and docstrings."""
    lines = sum(
        token.type == tokenize.NEWLINE
        for token in tokenize.generate_tokens(io.StringIO(source.text).readline)
    )
    return lines - sum(1 for _ in docstrings(source.tree))


def docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the docstrings of a module and of all that is in it."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            value = body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield value


def lines_under(*folders: str) -> int:
    """Return the logical lines of all files under some folders."""
    return sum(logical_lines(source) for source in sources() if source.path.startswith(folders))


@cache
def graph() -> grimp.ImportGraph:
    """Return the graph of imports of the product."""
    return grimp.build_graph("functions", "infra", "shared", cache_dir=None)


def loaded_by(module: str) -> set[str]:
    """Return all modules of the product that an import of a module loads."""
    reached = graph().find_upstream_modules(module) | {module}
    packages = {name.rpartition(".")[0] for name in reached}
    return reached | {name for name in packages if name}


def timer_lines() -> tuple[int, int]:
    """Return how many lines and modules of the product the function of a timer loads."""
    loaded = loaded_by(TIMER)
    own = [source for source in sources() if source.module in loaded]
    return sum(source.text.count("\n") for source in own), len(own)


def entry_points() -> list[str]:
    """Return the modules that AWS Lambda, the forwarder's pod or the command line start."""
    commands = (".commands", ".doctor", ".migrate", ".why", ".catalog", ".prerequisites")
    ends = (".handler", ".__main__", *commands)
    return [
        name for name in graph().modules if name.startswith("functions.") and name.endswith(ends)
    ]


def unreached() -> list[str]:
    """Return modules of shared that nothing which runs imports."""
    reached = set().union(*(loaded_by(name) for name in entry_points()))
    return sorted(
        name for name in graph().modules if name.startswith("shared.") and name not in reached
    )


def decision_classes() -> int:
    """Return how many classes the modules have that decide within the function provision."""
    reached = loaded_by("functions.provision.handler")
    return sum(
        isinstance(node, ast.ClassDef)
        for source in sources()
        if source.module in reached and source.module.startswith(DECIDING)
        for node in ast.walk(source.tree)
    )


def loops_over_one() -> int:
    """Return how many loops have the variable `one`."""
    targets = [
        node.target
        for source in sources()
        if _NAMED_ONE.search(source.text)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.For | ast.comprehension)
    ]
    return sum(isinstance(target, ast.Name) and target.id == "one" for target in targets)


def largest_packages(most: int) -> list[tuple[str, int]]:
    """Return the packages with more files than this, the largest first; `__init__` is none."""
    counted = Counter(
        source.path.rpartition("/")[0]
        for source in sources()
        if not source.path.endswith("__init__.py")
    )
    return [(name, count) for name, count in counted.most_common() if count > most]


def yaml_lines() -> int:
    """Return the lines of YAML under infra that no command makes.

    A file that a command makes says so in its first line; a test compares it with what would be
    made now (tests/infra/cluster/test_crds.py).
    """
    found = [
        (ROOT / path).read_text(encoding="utf-8").splitlines()
        for pattern in ("infra/*.yaml", "infra/*.yml")
        for path in tracked(pattern)
    ]
    return sum(len(lines) for lines in found if not lines[0].startswith(MADE_BY))


def texts() -> Iterator[tuple[str, int, str]]:
    """Yield path, line and text of each string, docstring and comment, and of each line of docs.

    Files without an idiom anywhere are left out unread.
    """
    for source in sources():
        if not _ANY_IDIOM.search(_JOINT.sub("", source.text) + source.text):
            continue
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield source.path, node.lineno, node.value
        for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
            if token.type == tokenize.COMMENT:
                yield source.path, token.start[0], token.string
    for path in tracked("*.md"):
        for number, line in enumerate((ROOT / path).read_text("utf-8").splitlines(), 1):
            yield path, number, line


def idioms() -> Iterator[tuple[str, str, int, str]]:
    """Yield idiom, path, line and text of each place that is not plain English."""
    patterns = [(idiom, re.compile(idiom, re.IGNORECASE)) for idiom in IDIOMS]
    for path, line, text in texts():
        if path == "tools/house.py" or "CHANGELOG" in path or not _ANY_IDIOM.search(text):
            continue
        for idiom, pattern in patterns:
            for found in pattern.finditer(text):
                number = line + text.count("\n", 0, found.start())
                yield idiom, path, number, text[max(0, found.start() - 30) : found.end() + 30]


def figures() -> Iterable[tuple[str, str, str]]:
    """Yield each figure: what it counts, the figure, the goal."""
    yield "logical lines of the product", f"{lines_under(*PRODUCT):,}", "-10 %"
    yield "logical lines of infra/local", f"{lines_under('infra/local/'):,}", "-12 %"
    yield "logical lines of tests", f"{lines_under('tests/'):,}", "-10 %"
    loaded, count = timer_lines()
    yield "lines a timer's function loads", f"{loaded:,} in {count} modules", f"{TIMER_LINES:,}"
    yield "modules that nothing reaches", " ".join(unreached()) or "0", "0"
    yield "classes on the decision path", str(decision_classes()), "60"
    yield "lines of YAML in infra kept by hand", f"{yaml_lines():,}", "300"
    flat = largest_packages(16)
    shown = ", ".join(f"{name} {count}" for name, count in flat)
    yield "packages of more than 16 files", f"{len(flat)}: {shown}" if flat else "0", "0"
    yield "loops over `one`", str(loops_over_one()), "0"
    yield "idioms", str(sum(1 for _ in idioms())), "0"
    readme = len((ROOT / "README.md").read_text(encoding="utf-8").split())
    yield "words of the README", f"{readme:,}", "900"


def passed_bars() -> Iterator[str]:
    """Yield a line for each figure over the bar that `make check` holds."""
    lines, _ = timer_lines()
    if lines > TIMER_LINES:
        yield f"{TIMER} loads {lines:,} lines, at most {TIMER_LINES:,}"
    if named := loops_over_one():
        yield f"{named} loops have the variable `one`: name it by the noun of the field"
    found = sum(1 for _ in idioms())
    if found:
        yield f"{found} idioms: `python -m tools.house --idioms` lists them"
    for name, count in largest_packages(16):
        yield f"{name} has {count} files, at most 16"
    for path in unreached():
        yield f"{path} is reached from no function and not from the command line"


def main() -> int:
    """Print the figures, or each idiom."""
    parser = argparse.ArgumentParser(prog="python -m tools.house", description=__doc__)
    parser.add_argument("--idioms", action="store_true", help="each place, by idiom")
    parser.add_argument("--bars", action="store_true", help="fail when a bar is passed")
    asked = parser.parse_args()
    if asked.bars:
        passed = list(passed_bars())
        sys.stderr.writelines(f"{text}\n" for text in passed)
        return int(bool(passed))
    if asked.idioms:
        for idiom, path, line, text in sorted(idioms()):
            sys.stdout.write(f"{path}:{line}: {text!r} ({IDIOMS[idiom]})\n")
        return 0
    for what, figure, goal in figures():
        sys.stdout.write(f"{what:38} {figure}  (goal {goal})\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
