"""NodePools as people publish them, decided for by both sides: `make peers DIR=folder`.

Each workload is decided for alone, in a cluster with the NodePools of one file: which of its pods
get a node, of which NodePool, and whether the node's labels are those that the pods ask for.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from shared.instance_types.catalog import embedded_catalog
from shared.model import labels as keys
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.planning.decide import decide
from tests.peers.judge import accepts
from tests.peers.pool_clusters import Cluster, clusters
from tests.peers.pool_pods import MOST_WORKLOADS, Asked
from tests.peers.problems import Raw
from tests.peers.sides import run

MOST_PERCENT: Final = 2.0
HEADING: Final = "## NodePools as published"
_SAID: Final = """\
Made by `make peers DIR=` with a folder of published manifests, {day}: the {pools} NodePools of the
{files} files that Dovetail accepts, unchanged. Karpenter reads them with its own types and the
defaults of its own definition. The pods follow from each NodePool: its requirements, labels, taints
and limits; for a file of many NodePools {most} workloads are drawn. Each workload is decided for
alone, until nothing more is launched. A pod differs when one side has no node for it, or a node of
another NodePool, or one with other labels of those that it asks for, or when its workload is spread
otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What one side decides for a workload.

    Attributes:
        labels: Of the node that each pod gets, by the pod's name.
        left_out: Why each other pod gets none.
    """

    labels: Mapping[str, Mapping[str, str]]
    left_out: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A class of pods for which the sides decide otherwise.

    Attributes:
        what: One of PLACED_BY_KARPENTER, PLACED_BY_DOVETAIL, OTHER_POOL and OTHER_LABELS.
        said: A pattern in why a side leaves them out, or in both answers; empty for any.
        kind: What the pods ask for; empty for anything.
        reason: Why that stays.
    """

    what: str
    said: str = ""
    kind: str = ""
    reason: str

    def covers(self, kind: str, what: str, said: str) -> bool:
        """Return whether a pod differs in this way."""
        return (
            what == self.what
            and self.kind in ("", kind)
            and re.search(self.said, said, re.DOTALL) is not None
        )


PLACED_BY_KARPENTER: Final = "a node from Karpenter only"
PLACED_BY_DOVETAIL: Final = "a node from Dovetail only"
OTHER_POOL: Final = "a node of another NodePool"
OTHER_LABELS: Final = "a node with other labels"
DIFFERENCES: Final = (
    Difference(
        what=PLACED_BY_DOVETAIL,
        said="no instance type met the scheduling requirements",
        kind="spread over zones",
        reason="Karpenter takes the zone with the fewest pods, then finds that no instance type "
        "there will do: the pod waits",
    ),
    Difference(
        what=PLACED_BY_DOVETAIL,
        said="unsatisfiable topology constraint for topology spread",
        kind="spread over capacity types",
        reason="Karpenter counts a capacity type that only other NodePools sell, where the pods "
        "may not run; kube-scheduler does not count it (nodeAffinityPolicy Honor)",
    ),
    Difference(
        what=OTHER_LABELS,
        kind="one zone together",
        reason="Karpenter leaves the zone of a group's first node open and launches the second one "
        "elsewhere: the pods are not in one zone, as they ask",
    ),
)


# -- both sides --------------------------------------------------------------------------------


def decided_by_dovetail(cluster: Cluster, snapshot: ClusterSnapshot) -> dict[str, Decided]:
    """Return Dovetail's decision for each workload alone, by its name."""
    types = {entry.name: entry for entry in snapshot.instance_types}
    by_name = {pod.name: pod for pod in snapshot.pending}
    found = {}
    for asked in cluster.asked:
        pending = tuple(by_name[name] for name in asked.workload.pods)
        plan = decide(replace(snapshot, pending=pending))
        labels: dict[str, Mapping[str, str]] = {}
        for number, node in enumerate(plan.nodes):
            offering = node.options[0].offering
            of_node = {
                **types[offering.instance_type].labels,
                **node.labels,
                keys.NODE_POOL: node.provisioner,
                keys.ZONE: offering.zone,
                keys.CAPACITY_TYPE: offering.capacity_type.value,
                keys.HOSTNAME: f"node-{number}",
            }
            labels.update((ref.name, of_node) for ref in node.pods)
        found[asked.workload.name] = Decided(
            labels=labels,
            left_out={entry.pod.name: "; ".join(entry.reasons) for entry in plan.unschedulable},
        )
    return found


def read_karpenter(said: Raw) -> dict[str, Decided]:
    """Return the Go program's answer, by workload."""
    return {
        name: Decided(
            labels={pod: node["labels"] for node in answer["nodes"] for pod in node["pods"]},
            left_out=answer["leftOut"],
        )
        for name, answer in said["workloads"].items()
    }


# -- the comparison ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """How a workload is decided for.

    Attributes:
        placed: Pods that get a node from both sides, of the same NodePool and with equal labels.
        left_out: Pods that get none from either.
        differing: Of the others, one entry each: one of the words of `Difference.what`, and what
            the side says that leaves the pod out, or both labels.
    """

    kind: str
    placed: int
    left_out: int
    differing: tuple[tuple[str, str], ...] = ()

    @property
    def pods(self) -> int:
        """How many there are."""
        return self.placed + self.left_out + len(self.differing)


def compare(asked: Asked, ours: Decided, theirs: Decided) -> Compared:
    """Compare two decisions for a workload; which of its equal pods gets which node is no matter.

    Raises:
        ValueError: A side says nothing of a pod, or both that it is placed and that it is not.
    """
    names = set(asked.workload.pods)
    for side in (ours, theirs):
        if Counter([*side.labels, *side.left_out]) != Counter(names):
            raise ValueError(f"{asked.kind}: each of {sorted(names)} must be decided for once")
    # Where one side leaves pods out, the others are spread otherwise by that alone.
    shaped = len(ours.labels) == len(theirs.labels)
    answers = [
        Counter(
            _answer(asked.workload.template, labels, side if shaped else None)
            for labels in side.labels.values()
        )
        for side in (ours, theirs)
    ]
    same = answers[0] & answers[1]
    mine, other = (list((found - same).elements()) for found in answers)
    differing = []
    for mine_one, other_one in zip(mine, other, strict=False):
        what = OTHER_LABELS if mine_one[0] == other_one[0] else OTHER_POOL
        differing.append((what, f"{mine_one} / {other_one}"))
    both = min(len(mine), len(other))
    whys = sorted(ours.left_out.values()), sorted(theirs.left_out.values())
    differing += [(PLACED_BY_KARPENTER, why) for why in whys[0][: len(other) - both]]
    differing += [(PLACED_BY_DOVETAIL, why) for why in whys[1][: len(mine) - both]]
    return Compared(
        kind=asked.kind,
        placed=same.total(),
        left_out=min(len(ours.left_out), len(theirs.left_out)),
        differing=tuple(differing),
    )


def _answer(
    template: Raw, labels: Mapping[str, str], side: Decided | None
) -> tuple[str, tuple[str, ...], tuple[int, ...]]:
    """Return NodePool, what the node has of the labels that pods ask for, and how they spread."""
    shape = _shape(template, side) if side else ()
    return labels[keys.NODE_POOL], tuple(_asked_labels(template, labels)), shape


def _asked_labels(template: Raw, labels: Mapping[str, str]) -> Iterator[str]:
    spec = template["spec"]
    for key in sorted(spec.get("nodeSelector", {})):
        yield f"{key}={labels.get(keys.normalize(key))}"
    rules = spec.get("affinity", {}).get("nodeAffinity", {}).values()
    for term in (term for rule in rules for term in rule["nodeSelectorTerms"]):
        for need in term["matchExpressions"]:
            yield f"{need['key']} {need['operator']}: {accepts(need, labels)}"


def _shape(template: Raw, side: Decided) -> tuple[int, ...]:
    """Return how many of the pods are in each domain of their rule, sorted; empty without one."""
    spec = template["spec"]
    rules = list(spec.get("topologySpreadConstraints", ()))
    for kind in ("podAffinity", "podAntiAffinity"):
        for terms in spec.get("affinity", {}).get(kind, {}).values():
            rules += terms
    return tuple(
        count
        for rule in rules
        for count in sorted(
            Counter(labels.get(rule["topologyKey"], "") for labels in side.labels.values()).values()
        )
    )


def explained(
    compared: Iterable[Compared], known: Sequence[Difference] = DIFFERENCES
) -> tuple[Counter[tuple[str, str]], list[str]]:
    """Return how many pods differ, by what and reason, and those for which there is no reason."""
    counts: Counter[tuple[str, str]] = Counter()
    unexplained = []
    for workload in compared:
        for what, said in workload.differing:
            why = next((entry for entry in known if entry.covers(workload.kind, what, said)), None)
            if why is None:
                unexplained.append(f"{workload.kind}: {what}: {said}")
            else:
                counts[what, why.reason] += 1
    return counts, unexplained


# -- the section of docs/evidence/peers.md -----------------------------------------------------


def compared_all(program: Path, folder: Path, seed: int) -> tuple[list[Cluster], list[Compared]]:
    """Ask both sides about all NodePools of a folder; how far it is goes to standard error.

    Raises:
        ValueError: Karpenter does not use a NodePool that Dovetail accepts.
    """
    seen: list[Cluster] = []
    found: list[Compared] = []
    for cluster in clusters(folder, embedded_catalog(), seed):
        sys.stderr.write(f"{cluster.name}\n")
        seen.append(cluster)
        snapshot = cluster.snapshot()
        said = run(program, "pools", cluster.for_karpenter(snapshot))
        if said["refused"]:
            raise ValueError(f"{cluster.name}: Karpenter refuses {said['refused']}")
        theirs = read_karpenter(said)
        ours = decided_by_dovetail(cluster, snapshot)
        found += [
            compare(asked, ours[asked.workload.name], theirs[asked.workload.name])
            for asked in cluster.asked
        ]
    return seen, found


def section(
    seen: Sequence[Cluster], found: Sequence[Compared], known: Sequence[Difference] = DIFFERENCES
) -> tuple[str, list[str]]:
    """Return the section, and what is too much: more than MOST_PERCENT, or without a reason."""
    counts, unexplained = explained(found, known)
    pods = sum(entry.pods for entry in found)
    differing = sum(len(entry.differing) for entry in found)
    percent = 100 * differing / pods if pods else 0.0
    too_much = list(unexplained)
    if not pods or percent > MOST_PERCENT:
        too_much.append(f"{differing} of {pods} pods differ, at most {MOST_PERCENT:.0f} % may")
    lines = [
        HEADING,
        "",
        _SAID.format(
            day=f"{datetime.now(UTC):%Y-%m-%d}",
            pools=sum(len(cluster.pools) for cluster in seen),
            most=MOST_WORKLOADS,
            files=len({cluster.name.partition(" ")[0] for cluster in seen}),
        ),
        "",
        f"**{differing:,} of {pods:,} pods differ ({percent:.1f} %).**",
        "",
        "| pods that ask for | pods | a node from both, alike | from neither | differ |",
        "| --- | --- | --- | --- | --- |",
    ]
    for kind in dict.fromkeys(entry.kind for entry in found):
        rows = [entry for entry in found if entry.kind == kind]
        numbers = (
            sum(entry.pods for entry in rows),
            sum(entry.placed for entry in rows),
            sum(entry.left_out for entry in rows),
            sum(len(entry.differing) for entry in rows),
        )
        lines.append(f"| {kind} | {' | '.join(f'{number:,}' for number in numbers)} |")
    if counts:
        lines += ["", "| difference | pods | why |", "| --- | --- | --- |"]
        lines += [
            f"| {what} | {count:,} | {reason} |" for (what, reason), count in sorted(counts.items())
        ]
    return "\n".join([*lines, ""]), too_much


def with_section(document: str, made: str) -> str:
    """Return a document with this section at its end, in place of the one that it had."""
    return f"{document.partition(HEADING)[0].rstrip()}\n\n{made}"


def section_of(document: str) -> str:
    """Return the section that a document has at its end, empty if it has none."""
    _, heading, text = document.partition(HEADING)
    return heading + text
