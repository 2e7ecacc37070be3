"""`dovetail migrate`: takes nodes over from the cluster's Karpenter v1, and hands them back."""

import argparse
import itertools
import json
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from functions.cli.parser import Subparsers, add_cluster, add_command, add_list
from functions.cli.printable_text import aligned
from functions.cli.run_command import one_cluster, refuse, run_command
from shared.model.codec import to_plain
from shared.model.dollars_and_counts import counted, hourly
from shared.model.errors import RetryableError
from shared.model.values import replace

if TYPE_CHECKING:
    from functions.cli.migrate.migration import Migration
    from functions.cli.migrate.runtime import MigrationRuntime
    from functions.cli.migrate.survey import MigrationSurvey, SurveyedNode

DONE: Final = 0
LEFT: Final = 1
_TEXT: Final = """\
Shows which nodes of a Karpenter v1 can be taken over, NodePool by NodePool, with what they cost,
and why others cannot; with --apply takes them over one by one. Instances and pods stay as they
are. Karpenter must be at zero replicas: it terminates each of its instances that has no NodeClaim.
With --back hands them back. Killed at any step and run again, it goes on.

Acts with your own rights, as `dovetail doctor` does; tags of instances are changed under a role of
the cluster that is deployed for the migration alone (-c migrators=CLUSTER:ARN).

  dovetail migrate --cluster prod
  dovetail migrate --cluster prod --node-pool default --apply
  dovetail migrate --cluster prod --node ip-10-0-0-7.ec2.internal --back --apply
"""
_CODES: Final = """exit codes:
  0  all nodes asked for have changed hands; without --apply: they can
  1  some cannot, or Karpenter runs
  2  bad input, or AWS or the cluster cannot be reached: one line says what
"""


def mount_migrate(
    subparsers: Subparsers, runtime: "Callable[[], MigrationRuntime] | None" = None
) -> None:
    """Add the command; its parsed namespace has a `run` that returns the exit code."""
    summary = "take nodes over from Karpenter v1, or hand them back; changes nothing by default"
    parser = add_command(subparsers, "migrate", summary, _TEXT, _CODES)
    add_cluster(parser)
    add_list(parser, "--node-pool", metavar="NAME", help="only its nodes; repeatable")
    add_list(parser, "--node", metavar="NAME", help="only this one; repeatable")
    parser.add_argument("--back", action="store_true", help="hand nodes back to Karpenter")
    parser.add_argument("--output", choices=("table", "json"), default="table")
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--dry-run", action="store_true", help="change nothing; the default")
    modes.add_argument("--apply", action="store_true", help="change what is shown")
    parser.set_defaults(run=lambda arguments: _run(arguments, runtime))


def _run(arguments: argparse.Namespace, runtime: "Callable[[], MigrationRuntime] | None") -> int:
    from functions.cli.migrate.runtime import MigrationRuntime  # noqa: PLC0415 -- not for --help

    return run_command(
        "migrate", runtime or MigrationRuntime, lambda known: _migrate(known, arguments)
    )


def _migrate(runtime: "MigrationRuntime", arguments: argparse.Namespace) -> int:
    from functions.cli.migrate.handover import Direction  # noqa: PLC0415 -- not for --help

    cluster = one_cluster(arguments.cluster, runtime.clusters)
    migration = runtime.migration(cluster, apply=arguments.apply)
    direction = Direction.HAND_BACK if arguments.back else Direction.TAKE_OVER
    survey = migration.survey(direction)
    missing = sorted({*arguments.node} - {row.node for row in survey.rows})
    if missing:
        return refuse("migrate", f"--node {missing[0]}: no such node to {direction}")
    rows = [row for row in survey.rows if _is_asked_for(row, arguments)]
    survey = replace(survey, rows=tuple(rows))
    as_json = arguments.output == "json"
    if not arguments.apply:
        sys.stdout.write(_as_json(survey) if as_json else survey_text(survey, applied=False))
        return LEFT if any(row.refusal for row in rows) else DONE
    if not as_json:
        sys.stdout.write(survey_text(survey, applied=True))
    failed = _apply(migration, survey)
    if as_json:
        after = migration.survey(direction)
        rows = [row for row in after.rows if _is_asked_for(row, arguments)]
        sys.stdout.write(_as_json(replace(after, rows=tuple(rows))))
    return LEFT if failed or any(row.refusal for row in survey.rows) else DONE


def _is_asked_for(row: "SurveyedNode", arguments: argparse.Namespace) -> bool:
    return (not arguments.node or row.node in arguments.node) and (
        not arguments.node_pool or row.node_pool in arguments.node_pool
    )


def _apply(migration: "Migration", survey: "MigrationSurvey") -> bool:
    """Hand over all nodes that can change hands; return whether any did not."""
    from functions.cli.migrate.migration import MigrationBlockedError  # noqa: PLC0415 -- not for --help

    rows = [row for row in survey.rows if row.is_open]
    moved = 0
    for number, row in enumerate(rows, start=1):

        def tell(step: object, name: str = row.node, number: int = number) -> None:
            sys.stderr.write(f"{number}/{len(rows)} {name}: {step}\n")

        try:
            migration.migrate_node(row.node, survey.direction, tell)
        except (MigrationBlockedError, RetryableError) as error:
            sys.stderr.write(f"{number}/{len(rows)} {row.node}: not done: {error}\n")
            if isinstance(error, MigrationBlockedError) and error.blocks_all:
                break
        else:
            moved += 1
    sys.stderr.write(f"{moved} of {len(rows)} nodes have changed hands\n")
    return moved < len(rows)


def survey_text(survey: "MigrationSurvey", *, applied: bool) -> str:
    """Return the survey as a table, NodePool by NodePool."""
    movable = [row for row in survey.rows if row.is_open]
    unchanged = "" if applied or not movable else "; nothing is changed without --apply"
    lines = [f"{survey.cluster}: {survey.direction} {_count_and_price(movable)}{unchanged}"]
    for node_pool, rows in itertools.groupby(survey.rows, key=lambda row: row.node_pool):
        listed = list(rows)
        lines.append(f"NodePool {node_pool or '(none)'}: {_count_and_price(listed)}")
        table = aligned([_cells(row, survey.direction) for row in listed])
        lines += [f"  {line}" for line in table]
    if survey.tally is not None:
        lines.append(survey.tally.text)
    lines += [f"before --apply: {reason}" for reason in survey.running]
    return "\n".join([*lines, ""])


def _count_and_price(rows: "Sequence[SurveyedNode]") -> str:
    price = hourly(sum(row.price_micros_per_hour for row in rows))
    return f"{counted(len(rows), 'node')}, {price}"


def _cells(row: "SurveyedNode", direction: str) -> tuple[str, ...]:
    price = hourly(row.price_micros_per_hour) if row.price_micros_per_hour else "-"
    state = "done" if row.done else f"refused: {row.refusal}" if row.refusal else direction
    shown = (row.node, row.instance_id, row.instance_type, row.zone, row.capacity_type, price)
    return (*(cell or "-" for cell in shown), state)


def _as_json(survey: "MigrationSurvey") -> str:
    return json.dumps(to_plain(survey), indent=2) + "\n"
