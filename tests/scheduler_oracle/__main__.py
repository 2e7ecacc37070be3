"""Shows the second opinion on one cluster, or on many.

.venv/bin/python -m tests.scheduler_oracle --seed 17             one cluster, reduced if it fails
.venv/bin/python -m tests.scheduler_oracle --seed 0 --count 500  many, a line for each kind of fault
"""

import argparse
import sys
import time
import traceback
from collections import Counter

from tests.scheduler_oracle.clusters.features import ENABLED
from tests.scheduler_oracle.clusters.generate import draw
from tests.scheduler_oracle.clusters.seeded_random import FEATURES
from tests.scheduler_oracle.opinion import judge
from tests.scheduler_oracle.running import Tally, describe, describe_missed, summary, written


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print the whole case")
    parser.add_argument("--all", action="store_true", help="also features not enabled yet")
    parser.add_argument("--only", default="", help="these features only, separated by commas")
    parser.add_argument("--missed", type=int, default=5, help="how many missed places to show")
    asked = parser.parse_args()
    enabled = frozenset(FEATURES) if asked.all else ENABLED
    if asked.only:
        enabled = frozenset(asked.only.split(","))
    if asked.count == 1:
        _one(asked.seed, enabled, show=asked.show)
    else:
        _many(range(asked.seed, asked.seed + asked.count), enabled, asked.missed)


def _one(seed: int, enabled: frozenset[str], *, show: bool) -> None:
    case = draw(seed, enabled)
    verdict = judge(case)
    if show:
        _say("\n".join(written(case)))
    _say(str(verdict))
    if verdict.missed:
        _say(describe_missed(seed, enabled))
    for kind in sorted({finding.kind for finding in verdict.findings}):
        finding = next(finding for finding in verdict.findings if finding.kind == kind)
        _say(describe(seed, finding, enabled))


def _many(seeds: range, enabled: frozenset[str], missed: int) -> None:
    tally = Tally()
    kinds: Counter[str] = Counter()
    shown: dict[str, str] = {}
    began = time.process_time()
    for seed in seeds:
        # The outermost loop of a tool: a crash is a finding like others, told with its seed.
        try:
            verdict = judge(draw(seed, enabled))
        except Exception as error:  # noqa: BLE001 - see above
            kind = f"crash: {error!r}"[:120]
            kinds[kind] += 1
            shown.setdefault(kind, f"seed {seed}\n{traceback.format_exc(limit=-4)}")
            continue
        tally.add(seed, verdict)
        for other_finding in {finding.kind: finding for finding in verdict.findings}.values():
            kinds[other_finding.kind] += 1
            shown.setdefault(other_finding.kind, f"seed {seed}: {other_finding.text}")
    spent = time.process_time() - began
    for kind, count in kinds.most_common():
        _say(f"{count:5} {kind}\n      {shown[kind]}")
    for seed, text in tally.missed[:missed]:
        _say(f"missed: seed {seed}: {text}")
    _say("\n".join(summary(tally.counts, seeds.start)))
    _say(f"{1000 * spent / len(seeds):.1f} ms of CPU for each cluster")


if __name__ == "__main__":
    main()
