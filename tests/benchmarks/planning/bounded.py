"""What the most expensive pods that a tenant may create cost one decision, innocents beside them.

Run as `python -m tests.benchmarks.planning.bounded [CASE] [--profile]`. Each case is a process of
its own: its pods are decoded from JSON as the API server would send them, and planned together with
twenty pods of another namespace. Memory is the peak of the process less what it held once the
product and its catalogue were loaded.
"""

import argparse
import cProfile
import json
import pstats
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final

from shared.instance_types.catalog import embedded_catalog
from shared.manifests import pod_bounds
from shared.manifests.pods import PodDecoder
from shared.model.ec2.instance_types import InstanceType
from shared.model.plan import Plan
from shared.model.requirements import Requirement, Requirements
from shared.model.snapshot import ClusterSnapshot
from shared.planning.decide import decide
from tests import builders as make
from tests.benchmarks.report import markdown

SECONDS: Final = 5.0
MEBIBYTES: Final = 300
INNOCENTS: Final = 20
# What etcd accepts at most of one object.
# Source: https://etcd.io/docs/v3.6/dev-guide/limit/ (2026-08)
_POD_BYTES: Final = 1_500_000
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_HOST: Final = "kubernetes.io/hostname"
_Affinity = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one case cost.

    Attributes:
        seconds: CPU time of decoding and deciding.
        mebibytes: Peak of the process less what it held before.
        planned: Pods of the case that have a place.
        innocents: Pods beside them that have a place.
    """

    seconds: float
    mebibytes: float
    planned: int
    innocents: int


def raw_pod(
    name: str,
    affinity: _Affinity | None = None,
    *,
    namespace: str = "tenant",
    cpu: str = "250m",
    memory: str = "256Mi",
    **spec: Any,
) -> dict[str, Any]:
    """Return a pod that waits for capacity, as the API server writes it."""
    asked = {"requests": {"cpu": cpu, "memory": memory}}
    return {
        "metadata": {
            "namespace": namespace,
            "name": name,
            "uid": f"{namespace}/{name}",
            "labels": {"name": name},
        },
        "spec": {
            "containers": [{"name": "main", "resources": asked}],
            "affinity": affinity or {},
            **spec,
        },
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
        },
    }


def innocents() -> list[dict[str, Any]]:
    """Return pods of another namespace that ask for nothing special."""
    return [raw_pod(f"web-{number}", namespace="shop") for number in range(INNOCENTS)]


def teams(count: int) -> list[dict[str, Any]]:
    """Return a pod with so many OR-ed terms, each of another value of a label left open."""
    terms = [expressions("team", "In", f"t{number}") for number in range(count)]
    return [raw_pod("teams", {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": terms}}})]


def pairs(count: int) -> list[dict[str, Any]]:
    """Return a pod that asks for so many pairs of values of two labels left open."""
    terms = [
        {
            "matchExpressions": [
                *expressions("team", "In", f"t{number % 40}")["matchExpressions"],
                *expressions("stage", "In", f"s{number // 40}")["matchExpressions"],
            ]
        }
        for number in range(count)
    ]
    return [raw_pod("pairs", {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": terms}}})]


def apart(count: int) -> list[dict[str, Any]]:
    """Return pods of which each keeps its host from every pod of another name."""
    return [
        raw_pod(
            f"p{number}",
            {
                "podAntiAffinity": {
                    _REQUIRED: [
                        {
                            "topologyKey": _HOST,
                            "labelSelector": expressions("name", "NotIn", f"p{number}"),
                        }
                    ]
                }
            },
            cpu="100m",
        )
        for number in range(count)
    ]


def preferences(count: int) -> list[dict[str, Any]]:
    """Return a pod with so many preferred node affinities that no node keeps all at once."""
    terms = [
        {"weight": number % 100 + 1, "preference": expressions("team", "In", f"t{number}")}
        for number in range(count)
    ]
    return [raw_pod("choosy", {"nodeAffinity": {_PREFERRED: terms}})]


def company(pods: int, count: int, first: int = 0) -> list[dict[str, Any]]:
    """Return pods of which each prefers the host of so many others, none of which is there."""
    return [
        raw_pod(
            f"lonely-{pod}",
            {
                "podAffinity": {
                    _PREFERRED: [
                        {
                            "weight": number % 100 + 1,
                            "podAffinityTerm": {
                                "topologyKey": _HOST,
                                "labelSelector": {"matchLabels": {"name": f"x{pod}-{number}"}},
                            },
                        }
                        for number in range(count)
                    ]
                }
            },
        )
        for pod in range(first, first + pods)
    ]


def just_below(pods: int, kind: str) -> list[dict[str, Any]]:
    """Return pods that ask for as much as one pod may, none of them for the same."""
    return [KINDS[kind](number) for number in range(pods)]


def _many_teams(pod: int) -> dict[str, Any]:
    terms = [expressions("team", "In", f"t{pod}-{n}") for n in range(pod_bounds.MAX_TERMS)]
    return raw_pod(f"teams-{pod}", {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": terms}}})


def _many_wishes(pod: int) -> dict[str, Any]:
    terms = [
        {"weight": n % 100 + 1, "preference": expressions("team", "In", f"t{pod}-{n}")}
        for n in range(pod_bounds.MAX_PREFERENCES)
    ]
    return raw_pod(f"wishes-{pod}", {"nodeAffinity": {_PREFERRED: terms}})


def _many_enemies(pod: int) -> dict[str, Any]:
    """Return a pod with rules of its own that count all of their like, itself too."""
    terms = [
        {"topologyKey": _HOST, "labelSelector": expressions("name", "NotIn", f"x{pod}-{n}")}
        for n in range(pod_bounds.MAX_RULES)
    ]
    return raw_pod(f"enemies-{pod}", {"podAntiAffinity": {_REQUIRED: terms}})


def _many_friends(pod: int) -> dict[str, Any]:
    """Return a pod that must be near many others, none of which is there."""
    terms = [
        {"topologyKey": _HOST, "labelSelector": expressions("name", "In", f"x{pod}-{n}")}
        for n in range(pod_bounds.MAX_RULES)
    ]
    return raw_pod(f"friends-{pod}", {"podAffinity": {_REQUIRED: terms}})


def _many_keys(pod: int) -> dict[str, Any]:
    """Return a pod with rules over labels that no node has."""
    terms = [
        {"topologyKey": f"example.com/t{pod}-{n}", "labelSelector": {"matchLabels": {"name": "x"}}}
        for n in range(pod_bounds.MAX_RULES // 2)
    ]
    section = {_REQUIRED: terms}
    return raw_pod(f"keys-{pod}", {"podAffinity": section, "podAntiAffinity": section})


def _many_spreads(pod: int) -> dict[str, Any]:
    rules = [
        {
            "maxSkew": 1 + n,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": expressions("name", "NotIn", f"x{pod}-{n}"),
        }
        for n in range(pod_bounds.MAX_RULES)
    ]
    return raw_pod(f"spreads-{pod}", topologySpreadConstraints=rules)


def _many_ports(pod: int) -> dict[str, Any]:
    ports = [{"hostPort": 1 + pod * 100 + n} for n in range(pod_bounds.MAX_HOST_PORTS)]
    asked = {"requests": {"cpu": "100m"}}
    containers = [{"name": "main", "resources": asked, "ports": ports}]
    return raw_pod(f"ports-{pod}", containers=containers)


def _many_resources(pod: int) -> dict[str, Any]:
    asked = {f"example.com/r{pod}-{n}": "1" for n in range(pod_bounds.MAX_RESOURCES - 4)}
    return raw_pod(
        f"resources-{pod}", containers=[{"name": "main", "resources": {"requests": asked}}]
    )


KINDS: Final[dict[str, Callable[[int], dict[str, Any]]]] = {
    "alternatives": _many_teams,
    "preferred nodes": _many_wishes,
    "preferred pods": lambda pod: company(1, pod_bounds.MAX_PREFERENCES, pod)[0],
    "anti-affinities": _many_enemies,
    "affinities": _many_friends,
    "topology keys": _many_keys,
    "spreads": _many_spreads,
    "host ports": _many_ports,
    "resources": _many_resources,
    "teams": lambda pod: raw_pod(f"team-{pod}", nodeSelector={"team": f"t{pod}"}),
}


def shapes(count: int) -> list[dict[str, Any]]:
    """Return pods of which no two ask for the same."""
    return [
        raw_pod(f"s{number}", cpu=f"{100 + number}m", memory=f"{128 + number * 7919 % 4001}Mi")
        for number in range(count)
    ]


def _sized(entry: Callable[[int], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the pod that is as large as etcd accepts."""
    probe = 100
    each = (len(json.dumps(entry(2 * probe))) - len(json.dumps(entry(probe)))) / probe
    return entry(int(_POD_BYTES / each) - 10)


CASES: Final[dict[str, Callable[[], list[dict[str, Any]]]]] = {
    "400 OR-terms over an open label": lambda: teams(400),
    "1,000 pairs over two open labels": lambda: pairs(1_000),
    "1.5 MB of OR-terms": lambda: _sized(teams),
    "1.5 MB of preferred node affinities": lambda: _sized(preferences),
    "1.5 MB of preferred pod affinities": lambda: _sized(lambda count: company(1, count)),
    "500 pods apart from each other": lambda: apart(500),
    "5,000 preferences of one pod": lambda: preferences(5_000),
    "5 pods of 6,000 preferred pod affinities": lambda: company(5, 6_000),
    "3,000 pods of 3,000 shapes": lambda: shapes(3_000),
    **{f"300 pods just below the bounds: {kind}": partial(just_below, 300, kind) for kind in KINDS},
}


def snapshot(pods: Sequence[dict[str, Any]]) -> ClusterSnapshot:
    """Return an empty cluster in which these pods wait, decoded anew.

    Its Provisioner leaves the labels `team` and `stage` open, with no list of values.
    """
    decoder = PodDecoder()
    found = [decoder.decode(json.loads(json.dumps(pod))) for pod in pods]
    left_open = [Requirement.parse(key, "Exists", []) for key in ("team", "stage")]
    return make.snapshot(
        *sorted(found, key=lambda pod: pod.key),
        provisioners=(make.provisioner(also=Requirements.of(left_open)),),
        instance_types=every_type(),
    )


@lru_cache(maxsize=1)
def every_type() -> tuple[InstanceType, ...]:
    """Return the whole embedded catalogue."""
    return embedded_catalog().instance_types


def placed(plan: Plan, namespace: str) -> int:
    """Return how many pods of a namespace a plan has places for."""
    groups = [node.pods for node in plan.nodes] + [placement.pods for placement in plan.placements]
    return sum(ref.namespace == namespace for group in groups for ref in group)


def measure(case: str) -> Cost:
    """Return what a case costs this process, in which nothing large has been decided before."""
    every_type()
    written = [*CASES[case](), *innocents()]
    before = _peak_mebibytes()
    began = time.process_time()
    plan = decide(snapshot(written))
    return Cost(
        seconds=time.process_time() - began,
        mebibytes=_peak_mebibytes() - before,
        planned=placed(plan, "tenant"),
        innocents=placed(plan, "shop"),
    )


def _peak_mebibytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def expressions(key: str, operator: str, *values: str) -> dict[str, Any]:
    """Return a term of one expression."""
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def rows() -> Iterator[Sequence[str]]:
    """Yield the rows of the table, each case in a process of its own."""
    for case in CASES:
        command = [sys.executable, "-m", __spec__.name, case, "--json"]
        root = Path(__file__).parents[3]
        ended = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
        found = Cost(**json.loads(ended.stdout))
        met = (
            found.seconds < SECONDS and found.mebibytes < MEBIBYTES and found.innocents == INNOCENTS
        )
        yield (
            case,
            f"{found.seconds:.2f}",
            f"{found.mebibytes:.0f}",
            str(found.planned),
            str(found.innocents),
            "yes" if met else "**no**",
        )


def table() -> list[str]:
    """Return the table as Markdown, with what it shows."""
    headings = ("case", "CPU s", "MiB", "planned", f"of {INNOCENTS} others", "met")
    return [
        "The most expensive pods that a tenant may create, in one decision, beside twenty pods of",
        "another namespace. CPU time of decoding and deciding; memory is the peak of the process",
        f"less what it held before. Bars: {SECONDS:g} s, {MEBIBYTES} MiB, all others planned.",
        "",
        *markdown(headings, rows()),
    ]


def main() -> None:
    """Measure one case, or all of them one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", choices=sorted(CASES), nargs="?")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument("--profile", action="store_true", help="where the time goes")
    chosen = parser.parse_args()
    if chosen.profile:
        profile = cProfile.Profile()
        profile.runcall(measure, chosen.case)
        pstats.Stats(profile).sort_stats("tottime").print_stats(30)
    elif chosen.json:
        found = measure(chosen.case)
        sys.stdout.write(json.dumps({slot: getattr(found, slot) for slot in Cost.__slots__}))
    elif chosen.case:
        sys.stdout.write(f"{measure(chosen.case)}\n")
    else:
        sys.stdout.write("\n".join(table()) + "\n")


if __name__ == "__main__":
    main()
