"""`dovetail what-if`: recorded decisions under other settings or other Provisioners."""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from functions.cli.input_error import InputError
from functions.cli.parser import Subparsers, add_command, add_list, add_settings
from functions.cli.printable_text import aligned, printable_text
from functions.cli.run_command import run_or_refuse
from shared.model.codec import to_plain
from shared.model.dollars_and_counts import counted, dollars, signed_dollars
from shared.model.errors import InvalidManifestError

if TYPE_CHECKING:
    from functions.cli.plan.recorded_decision import RecordedDecision
    from functions.cli.plan.what_if import WhatIfResult
    from shared.model.provisioner import Provisioner
    from shared.model.snapshot import ClusterSnapshot

ANSWERED: Final = 0
_LARGEST: Final = 5
_SUFFIXES: Final = (".json", ".json.gz")
_TEXT: Final = """\
Decides recorded decisions again under other settings or with other Provisioners, and says what
would have been planned, what it would have cost while the nodes ran, and which pods would have
waited. Needs no cluster and no AWS once the decisions are here:

  aws s3 sync s3://BUCKET . --exclude "*" --include "*/prod/2026-11-23/*"
  dovetail what-if decisions --set max_node_vcpus=16
  dovetail what-if decisions --provisioner new.yaml

Each decision is replayed on what was there when it was made, with the nodes that were there.
"""
_CODES: Final = """exit codes:
  0  answered
  2  bad input: one line says what and where
"""


def mount_what_if(subparsers: Subparsers) -> None:
    """Add the command; its parsed namespace has a `run` that returns the exit code."""
    summary = "replay the decisions of a day under another policy"
    parser = add_command(subparsers, "what-if", summary, _TEXT, _CODES)
    parser.add_argument(
        "decisions", nargs="+", metavar="DECISIONS", help="files of decisions, or folders of them"
    )
    add_settings(parser, "a setting, see dovetail plan --help; may be repeated")
    provisioners = "Provisioners or NodePools instead of those of the same name; may be repeated"
    add_list(parser, "--provisioner", metavar="FILE", help=provisioners)
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(run=lambda arguments: run_or_refuse("what-if", lambda: _answer(arguments)))


def _answer(arguments: argparse.Namespace) -> int:
    # Imported when it runs: `dovetail --help` needs none of it.
    from functions.cli.plan.packing_settings import overridden_policy_notes, with_settings  # noqa: PLC0415
    from functions.cli.plan.what_if import what_if, with_provisioners  # noqa: PLC0415
    from shared.packing.problem import PackingSettings  # noqa: PLC0415

    # Invalid settings are refused before anything is decided.
    requested, by_default = with_settings(PackingSettings(), arguments.settings), PackingSettings()
    provisioners = _provisioners(arguments.provisioner)
    notes: list[str] = []

    def with_chosen_provisioners(snapshot: "ClusterSnapshot") -> "ClusterSnapshot":
        if provisioners:
            snapshot = with_provisioners(snapshot, provisioners)
        found = overridden_policy_notes(requested, by_default, snapshot.provisioners)
        notes.extend(note for note in found if note not in notes)
        return snapshot

    steps = what_if(
        _decisions(arguments.decisions, notes),
        lambda settings: with_settings(settings, arguments.settings),
        with_chosen_provisioners,
    )
    sys.stderr.write(printable_text(f"note: {note}" for note in notes))
    if not steps:
        raise InputError(f"{arguments.decisions[0]}: holds no decision; see the notes")
    sys.stdout.write(_as_json(steps) if arguments.json else _as_text(steps))
    return ANSWERED


def _provisioners(names: Sequence[str]) -> "tuple[Provisioner, ...]":
    from functions.cli.plan.inputs import read_all, read_catalog  # noqa: PLC0415
    from functions.cli.plan.reading.provisioners import as_current, read_provisioners  # noqa: PLC0415

    notes: list[str] = []
    documents = [as_current(found, notes) for found in read_all(names, notes)]
    found = read_provisioners(documents, read_catalog(None), notes)
    if names and not found:
        raise InputError(f"{', '.join(names)}: holds no Provisioner and no NodePool")
    return found


def _decisions(names: Sequence[str], notes: list[str]) -> "Iterator[RecordedDecision]":
    """Yield the decisions of files and folders, one at a time and each file once.

    In a folder, files that are not decisions are left out with a note; a file given by name must be
    one.
    """
    from functions.cli.plan.decisions import recorded_decision  # noqa: PLC0415

    seen = set()
    for name in names:
        folder = Path(name) if name else None
        of_folder = folder is not None and folder.is_dir()
        files = [name]
        if folder is not None and of_folder:
            files = [str(path) for path in sorted(folder.rglob("*")) if _is_decision(path)]
            if not files:
                raise InputError(f"{name}: holds no .json and no .json.gz file")
        for file in files:
            resolved_path = Path(file).resolve()
            if resolved_path in seen:
                continue
            seen.add(resolved_path)
            try:
                yield recorded_decision(file)
            except (InputError, InvalidManifestError) as error:
                problem = str(error)
                if isinstance(error, InvalidManifestError):
                    problem = f"{file}: {error.field}: {error.remedy}"
                if not of_folder:
                    raise InputError(problem) from error
                notes.append(f"{problem}; left out")


def _is_decision(path: Path) -> bool:
    # A base is at bases/CLUSTER/DAY/PLAN.json.gz, beside the decisions that name it.
    return path.name.endswith(_SUFFIXES) and path.parts[-4:-3] != ("bases",) and path.is_file()


def _as_text(steps: "Sequence[WhatIfResult]") -> str:
    from functions.cli.plan.what_if import paid_micros  # noqa: PLC0415

    paid = paid_micros(steps)
    planned = _sums(steps, "cost_micros_per_hour")
    rows: list[tuple[str, ...]] = [
        ("", "RECORDED", "WHAT IF", ""),
        ("planned", *(f"{dollars(micros)}/h" for micros in planned), _change(*planned)),
        ("paid while they ran", *map(dollars, paid), _change(*paid)),
        _counts("nodes", *_sums(steps, "nodes")),
        *((f"  {title}", f"{count:,}", "-", "-") for title, count in _launches(steps)),
        _counts("pods placed", *_sums(steps, "placed")),
        _counts("pods that waited", *_sums(steps, "waiting")),
    ]
    clusters = ", ".join(sorted({step.cluster for step in steps}))
    times = [step.taken_at for step in steps]
    span = f"{min(times):%Y-%m-%d %H:%M} to {max(times):%Y-%m-%d %H:%M} UTC"
    changed = [step for step in steps if step.recorded != step.other]
    largest = sorted(changed, key=lambda step: (-abs(step.extra_micros_per_hour), step.plan_id))
    lines = [
        f"{counted(len(steps), 'decision')} of {clusters}, {span}",
        *aligned(rows, right_aligned={1, 2, 3}),
        f"{counted(len(changed), 'decision')} would have been another",
    ]
    for step in largest[:_LARGEST]:
        # A decision that `dovetail plan` saved has no id.
        name = f"{step.taken_at:%H:%M:%S} {step.plan_id}".rstrip()
        lines.append(
            f"  {name}: {signed_dollars(step.extra_micros_per_hour)}/h, "
            f"nodes {step.recorded.nodes} -> {step.other.nodes}, pods that wait "
            f"{step.recorded.waiting} -> {step.other.waiting}"
        )
    return printable_text(lines)


def _as_json(steps: "Sequence[WhatIfResult]") -> str:

    from functions.cli.plan.what_if import paid_micros  # noqa: PLC0415

    recorded, other = paid_micros(steps)
    document = {
        "version": 1,
        "paid_micros": {"recorded": recorded, "other": other},
        "decisions": [
            {
                "plan_id": step.plan_id,
                "cluster": step.cluster,
                "taken_at": step.taken_at.isoformat(),
                "launched": step.launched,
                "recorded": to_plain(step.recorded),
                "other": to_plain(step.other),
            }
            for step in steps
        ],
    }
    return json.dumps(document, indent=2) + "\n"


def _launches(steps: "Sequence[WhatIfResult]") -> "Iterator[tuple[str, int]]":
    """Yield what came of the recorded plans' nodes, and of how many; nothing if none is known."""
    known = [step for step in steps if step.launched is not None]
    launched = sum(step.launched or 0 for step in known)
    refused = sum(step.recorded.nodes for step in known) - launched
    unknown = sum(step.recorded.nodes for step in steps if step.launched is None)
    if known:
        yield "launched", launched
        yield "refused or gone", refused
        yield "not known yet", unknown


def _sums(steps: "Sequence[WhatIfResult]", field: str) -> tuple[int, int]:
    recorded = sum(getattr(step.recorded, field) for step in steps)
    return recorded, sum(getattr(step.other, field) for step in steps)


def _counts(title: str, recorded: int, other: int) -> tuple[str, ...]:
    return title, f"{recorded:,}", f"{other:,}", f"{other - recorded:+,}"


def _change(before: int, after: int) -> str:
    return f"{100 * (after - before) / before:+.1f} %" if before else "-"
