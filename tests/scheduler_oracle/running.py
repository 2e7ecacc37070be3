"""Many clusters in a row: counts, findings, and the smallest case that shows a finding."""

import contextlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tests.scheduler_oracle.clusters.generate import draw
from tests.scheduler_oracle.clusters.seeded_random import Json
from tests.scheduler_oracle.judging import Finding
from tests.scheduler_oracle.opinion import Verdict, judge
from tests.scheduler_oracle.shrinking import shrink

COUNTED = ("asked", "placed", "pending", "tried", "pairs")


@dataclass(slots=True)
class Tally:
    """What came of a run.

    Attributes:
        counts: Sums over all clusters, by name.
        failures: (seed, finding) of the clusters whose plan is wrong.
        missed: (seed, text) of pods that had a place although the plan gave them up.
    """

    counts: dict[str, int] = field(default_factory=dict)
    failures: list[tuple[int, Finding]] = field(default_factory=list)
    missed: list[tuple[int, str]] = field(default_factory=list)

    def add(self, seed: int, verdict: Verdict) -> None:
        more = {name: getattr(verdict, name) for name in COUNTED}
        more |= {
            "clusters": 1,
            "wrong": int(bool(verdict.findings)),
            "missed": len(verdict.missed),
            "with_placements": int(bool(verdict.placed)),
            "by_itself": int(bool(verdict.placed) and verdict.by_itself),
        }
        for name, count in more.items():
            self.counts[name] = self.counts.get(name, 0) + count
        self.failures += [(seed, finding) for finding in verdict.findings]
        self.missed += [(seed, value) for value in verdict.missed]


def run(seeds: Iterable[int], enabled: frozenset[str]) -> Tally:
    """Judge the clusters of these seeds.

    Raises:
        Exception: What the decision raises, with the seed as a note.
    """
    tally = Tally()
    for seed in seeds:
        try:
            tally.add(seed, judge(draw(seed, enabled)))
        except Exception as error:
            error.add_note(f"second opinion: seed {seed}; {command(seed)}")
            raise
    return tally


def command(seed: int) -> str:
    """Return how to see a seed again."""
    return f".venv/bin/python -m tests.scheduler_oracle --seed {seed}"


def describe(seed: int, finding: Finding, enabled: frozenset[str]) -> str:
    """Return a finding with the smallest case that shows one of the same kind."""
    case = shrink(draw(seed, enabled), lambda entry: shows(entry, finding.kind))
    found = next(
        other_finding
        for other_finding in judge(case).findings
        if other_finding.kind == finding.kind
    )
    lines = [f"seed {seed}: {found.kind}", f"  {found.text}", f"  again: {command(seed)}"]
    return "\n".join([*lines, *written(case)])


def describe_missed(seed: int, enabled: frozenset[str]) -> str:
    """Return the smallest case in which a pod with a place is left pending."""
    case = shrink(draw(seed, enabled), misses)
    lines = [f"seed {seed}: {judge(case).missed[0]}", f"  again: {command(seed)}"]
    return "\n".join([*lines, *written(case)])


def misses(case: Json) -> bool:
    """Return whether a pod of a case that had a place is left pending."""
    # See `shows`.
    with contextlib.suppress(Exception):
        return bool(judge(case).missed)
    return False


def written(case: Json) -> Iterator[str]:
    """Yield a case line by line, one for each document."""
    for key, value in case.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            yield f"  {key}:"
            yield from (f"  - {json.dumps(entry)}" for entry in value)
        elif value and key not in ("features", "namespaces", "seed"):
            yield f"  {key}: {json.dumps(value)}"


def shows(case: Json, kind: str) -> bool:
    """Return whether a case shows a finding of a kind."""
    # A document that was cut may break any reader: such a cut shows nothing.
    with contextlib.suppress(Exception):
        return any(finding.kind == kind for finding in judge(case).findings)
    return False


def summary(counts: dict[str, int], first: int) -> list[str]:
    """Return what a run shows, for people."""
    told = {name: f"{counts.get(name, 0):,}" for name in ("clusters", *COUNTED)}
    wrong = f"{counts['wrong']} clusters with findings" if counts.get("wrong") else "all accepted"
    missed = _share(counts, "missed", "tried")
    alone = _share(counts, "by_itself", "with_placements")
    return [
        "second opinion: {clusters} random clusters from seed ".format(**told)
        + "{}, {pairs} placements asked about: {}".format(first, wrong, **told),
        "  of {asked} pods {placed} placed, {pending} left pending; ".format(**told)
        + "everything tried for {tried} of these, {} had a place".format(missed, **told),
        f"  kube-scheduler by itself places all on the same nodes: {alone} of the clusters",
    ]


def _share(counts: dict[str, int], part: str, whole: str) -> str:
    total = counts.get(whole, 0)
    return f"{counts.get(part, 0)} ({100 * counts.get(part, 0) / total if total else 0:.1f} %)"
