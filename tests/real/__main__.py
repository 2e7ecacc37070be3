"""`python -m tests.real`: scenarios on a real control plane, a row each to .build/real/table."""

import argparse
import math
import sys
import time
from pathlib import Path

from infra.local.demo.problem import Problem
from infra.local.demo.scenario import load_scenario, scenario_names
from tests.real import table
from tests.real.build import CACHE, build_cloud, build_cluster, minors, say
from tests.real.cluster import Cluster
from tests.real.play import (
    BOOT_SECONDS,
    CLOUDS,
    HOLLOW,
    KUBELETS,
    REAL,
    SIMULATED,
    play,
    with_limits,
)
from tests.real.speed import PODS, factor_of, measure


def main() -> int:
    """Play what the table lacks; return 1 if a row did not pass."""
    options = _parser().parse_args()
    try:
        program = build_cluster(options.minor)
        cloud = build_cloud() if options.cloud == REAL else None
        if options.only_build:
            say(str(program))
            return 0
        return _play(options, program, cloud)
    except Problem as problem:
        sys.stderr.write(f"tests.real: {problem}\n")
        return 2


def _play(options: argparse.Namespace, program: Path, cloud: Path | None) -> int:
    names = options.scenario or list(scenario_names())
    state = table.git_state()
    wanted = [
        table.Key(
            state=state,
            scenario=name,
            minor=options.minor,
            kubelet=options.kubelet,
            run=run,
            cloud=options.cloud,
        )
        for run in range(1, options.runs + 1)
        for name in names
    ]
    known = {row.key for row in table.rows()}
    left = [key for key in wanted if key not in known]
    say(f"{state}: {len(wanted) - len(left)} of {len(wanted)} rows are in the table")
    for number, key in enumerate(left):
        minutes = math.ceil(table.seconds_for(left[number:]) / 60)
        say(f"{key.scenario}: row {number + 1} of {len(left)}, about {minutes} min to go")
        row = _row(key, program, cloud)
        table.add(row)
        say(row.line)
    found = [row for row in table.rows() if row.key in wanted]
    say(table.total(found))
    return 0 if all(row.passed for row in found) else 1


def _row(key: table.Key, program: Path, cloud: Path | None) -> table.Row:
    """Measure how slow the machine is now, and play a scenario."""
    began = time.monotonic()
    with Cluster(program) as cluster:
        seconds = measure(cluster)
    factor = factor_of(seconds)
    say(f"  {PODS} pods on one kubelet run after {seconds:.1f} s: time limits × {factor}")
    written = load_scenario(key.scenario)
    place = f"{key.scenario}-{key.minor}-{key.kubelet}-{key.cloud}-{key.run}"
    played = play(
        with_limits(written, [step.within_seconds * factor for step in written.steps], factor),
        program,
        kubelet=key.kubelet,
        logs=CACHE / "logs" / place,
        boot_seconds=BOOT_SECONDS,
        cloud=cloud,
    )
    return table.row_of(key, played, factor, time.monotonic() - began)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.real", description=__doc__)
    add = parser.add_argument
    add("--scenario", nargs="*", metavar="NAME", help="some scenarios; without, all")
    add("--minor", default=minors()[-1], help=f"of Kubernetes: one of {', '.join(minors())}")
    add("--kubelet", default=HOLLOW, choices=KUBELETS)
    add("--cloud", default=SIMULATED, choices=CLOUDS, help="cloud controller manager")
    add("--runs", type=int, default=1, help="how often each scenario is played")
    add("--only-build", action="store_true", help="build the program and print its path")
    return parser


if __name__ == "__main__":
    sys.exit(main())
