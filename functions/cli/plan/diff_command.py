"""`dovetail plan --diff`: what a change of manifests does to their plan."""

import argparse
import io
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import yaml

from functions.cli.input_error import InputError
from functions.cli.plan.job_runs import WITHOUT_JOBS, job_run_lines
from functions.cli.plan.manifest_diff import Change, ManifestDiff, diff
from functions.cli.plan.planned import Planned
from functions.cli.plan.scenarios import CRON_PEAK
from functions.cli.plan.without_place import without_place_lines
from functions.cli.printable_text import aligned, markdown_table, printable_text
from shared.model.codec import to_plain
from shared.model.dollars_and_counts import HOURS_A_MONTH, MICROS

SAME_PLACES: Final = 0
TOO_MUCH: Final = 1
NO_PLACE: Final = 3
_MOST_ROWS: Final = 20
_RANGE: Final = re.compile(r"(?P<old>[^.-].*?)\.\.(?P<new>[^.-].*)")
_INCREASE: Final = re.compile(r"(?P<amount>\d{1,9}(\.\d{1,4})?)(?P<percent>%?)", re.ASCII)
_HEADINGS: Final = ("", "OLD", "NEW", "CHANGE")

Plans = Callable[[Sequence[str]], Planned]


def run_diff(arguments: argparse.Namespace, planned: Plans) -> int:
    """Print the difference; return the exit code.

    Args:
        planned: Returns the plan for files and folders.

    Raises:
        InputError: If the sides or the limit cannot be read.
    """
    limit = _limit(arguments.max_increase)
    with TemporaryDirectory(prefix="dovetail-") as folder:
        old, new = _sides(arguments.diff, arguments.filename or [], Path(folder))
        before, after = planned(old), planned(new)
    found = diff(before, after)
    sys.stdout.write(_text(found, tuple(job_run_lines(after)), arguments.output))
    at_peak = CRON_PEAK in (arguments.at or ())
    old_cost, new_cost = found.cost if at_peak else found.cost_without_jobs
    if limit is not None and new_cost - old_cost > limit(old_cost):
        sys.stderr.write(
            f"dovetail plan: costs more than --max-increase {arguments.max_increase}\n"
        )
        return TOO_MUCH
    return NO_PLACE if found.no_place else SAME_PLACES


def _limit(text: str | None) -> Callable[[int], int] | None:
    """Return the most increase in micro-dollars per hour, by the cost before."""
    if text is None:
        return None
    found = _INCREASE.fullmatch(text)
    if found is None:
        raise InputError(f"--max-increase {text}: write 5% for percent, 5 for dollars a month")
    amount = float(found["amount"])
    if found["percent"]:
        return lambda before: int(before * amount / 100)
    return lambda _: int(amount * MICROS / HOURS_A_MONTH)


def _sides(named: Sequence[str], files: Sequence[str], folder: Path) -> tuple[list[str], list[str]]:
    """Return the files of both sides: two folders or files, or a range of two git revisions."""
    if len(named) == 2:
        return [named[0], *files], [named[1], *files]
    found = _RANGE.fullmatch(named[0]) if len(named) == 1 else None
    if found is None:
        given = " ".join(named)
        raise InputError(f"--diff {given}: give two folders or files, or OLD..NEW of git with -f")
    if not files:
        raise InputError(f"--diff {named[0]}: name the files of the revisions with -f")
    return tuple(  # type: ignore[return-value]
        _of_revision(found[side], files, folder / side) for side in ("old", "new")
    )


def _of_revision(revision: str, files: Sequence[str], folder: Path) -> list[str]:
    """Write files of a git revision into a folder; return their names there."""
    try:
        ended = subprocess.run(  # noqa: S603 -- revisions cannot begin as options do
            ["git", "archive", "--format=tar", revision, "--", *files],  # noqa: S607 -- as the user finds it
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise InputError(f"--diff: git: {error.strerror}; name two folders instead") from error
    if ended.returncode:
        said = ended.stderr.decode(errors="replace").strip().splitlines()
        raise InputError(f"--diff: git archive {revision}: {said[-1] if said else 'failed'}")
    folder.mkdir()
    with tarfile.open(fileobj=io.BytesIO(ended.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return [str(folder / name) for name in files]


def _text(found: ManifestDiff, jobs: Sequence[str], output: str) -> str:
    if output == "json":
        return json.dumps(to_plain(found), indent=2) + "\n"
    if output == "yaml":
        return str(yaml.safe_dump(to_plain(found), sort_keys=False))
    sections, left = list(_sections(found)), [*jobs, *without_place_lines(found.no_place)]
    if output == "markdown":
        lines = [line for title, rows in sections for line in _markdown(title, rows)]
        return printable_text([*lines, *(f"- {line}" for line in left)])
    lines = list[str]()
    for title, rows in sections:
        lines += [*([""] if lines else []), *([title] if title else [])]
        lines += aligned([_HEADINGS, *rows], {1, 2, 3})
    return printable_text([*lines, *([""] if left else []), *left])


def _sections(found: ManifestDiff) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    always = found.cost_without_jobs
    old, new = (cost * HOURS_A_MONTH for cost in always)
    of_what, rows = "", [_costs("$/h", *found.cost)]
    if always != found.cost:
        of_what = WITHOUT_JOBS
        rows.append(_costs(f"$/h{of_what}", *always))
    rows = [
        _row("nodes", *found.nodes),
        *rows,
        _costs(f"$/month{of_what}", old, new, digits=2),
        _row("pods placed", *found.pods),
    ]
    (kept_before, stated_before), (kept, stated) = found.kept
    if stated_before or stated:
        kept_of = (f"{kept_before}/{stated_before}", f"{kept}/{stated}")
        rows.append(("preferences kept", *kept_of, ""))
    yield "", rows
    for title, changes, noun in (
        ("by owner", found.owners, "nodes"),
        ("by workload", found.workloads, "pods"),
    ):
        if changes:
            yield title, [row for change in changes[:_MOST_ROWS] for row in _of(change, noun)]


def _of(change: Change, noun: str) -> Iterator[tuple[str, ...]]:
    yield _costs(f"{change.name} $/h", *change.cost)
    if change.count[0] != change.count[1]:
        yield _row(f"{change.name} {noun}", *change.count)


def _row(name: str, before: int, after: int) -> tuple[str, ...]:
    return name, f"{before:,}", f"{after:,}", f"{after - before:+,}" if after != before else "same"


def _costs(name: str, before: int, after: int, digits: int = 4) -> tuple[str, ...]:
    change = "same"
    if after != before:
        percent = f" ({100 * (after - before) / before:+.1f} %)" if before else ""
        more = (after - before) / MICROS
        change = f"{'-' if more < 0 else '+'}${abs(more):,.{digits}f}{percent}"
    old, new = (f"${micros / MICROS:,.{digits}f}" for micros in (before, after))
    return name, old, new, change


def _markdown(title: str, rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"**{title}**" if title else "**What this change does to the nodes that Dovetail plans**"
    yield ""
    yield from markdown_table([("", "old", "new", "change"), *rows])
    yield ""
