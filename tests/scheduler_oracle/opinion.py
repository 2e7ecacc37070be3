"""One cluster from its seed to a verdict."""

from dataclasses import dataclass

from shared.model.plan import Plan
from shared.model.snapshot import ClusterSnapshot
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from tests.scheduler_oracle.clusters import keys
from tests.scheduler_oracle.clusters.seeded_random import Json
from tests.scheduler_oracle.judging import (
    Finding,
    asked_for,
    bind_all,
    build,
    check_coverage,
    check_limits,
    check_options,
    outcomes,
    place_of,
)
from tests.scheduler_oracle.missing import Trials
from tests.scheduler_oracle.reading import snapshot_of
from tests.scheduler_oracle.worlds import World

_MOST_TRIED = 4
_LARGE = 40
# Every so many clusters are decided twice.
_REPEATED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result for one cluster.

    Attributes:
        asked: Pods that asked for capacity.
        pending: Those that the plan leaves pending.
        tried: Those of them for which every other place was tried.
        missed: Those of them that would have had a place, with the place.
        pairs: (pod, node) pairs that the scheduler was asked about.
        by_itself: Whether the scheduler alone places all the plan's pods on the plan's nodes.
    """

    findings: tuple[Finding, ...]
    asked: int
    placed: int
    pending: int
    tried: int
    missed: tuple[str, ...]
    pairs: int
    by_itself: bool


def judge(case: Json, *, samples: int = 1) -> Verdict:
    """Decide the case and hold the decision against the scheduler's rules."""
    snapshot = snapshot_of(case)
    settings = PackingSettings(**case["settings"])
    plan = decide(snapshot, settings)
    findings = []
    if case["seed"] % _REPEATED == 0 and decide(snapshot, settings) != plan:
        findings.append(Finding("not repeatable", "the same snapshot gives two plans"))
    findings += [
        *check_coverage(case, plan),
        *check_limits(case, plan, snapshot),
        *check_options(case, plan, snapshot),
    ]
    places = place_of(case, plan)
    worlds = []
    for chosen in outcomes(plan, case["seed"], samples):
        world = build(case, plan, snapshot, chosen)
        if not any(finding.kind == "coverage" for finding in findings):
            findings += bind_all(case, plan, world)
        worlds.append(world)
    tried, missed = _missed(case, snapshot, plan, worlds) if not findings else (0, ())
    return Verdict(
        findings=tuple(dict.fromkeys(findings)),
        asked=len(asked_for(case)),
        placed=len(places),
        pending=len(plan.unschedulable),
        tried=tried,
        missed=missed,
        pairs=len(places) * len(worlds),
        by_itself=_by_itself(case, plan, snapshot, places) if not findings else False,
    )


def _missed(
    case: Json, snapshot: ClusterSnapshot, plan: Plan, worlds: list[World]
) -> tuple[int, tuple[str, ...]]:
    """Try every place for some of the pods left pending; a place counts if every outcome has it."""
    unsettled = any(
        slot["seen"] == "ordered" and len({way[keys.ZONE] for way in slot["options"]}) > 1
        for slot in case["slots"]
    )
    # Where ordered nodes may come up in several zones no single world says what is possible.
    if not plan.unschedulable or len(case["pods"]) > _LARGE or unsettled:
        return 0, ()
    pods = {pod["metadata"]["uid"]: pod for pod in case["pods"]}
    trials = Trials(case, snapshot, plan)
    found = []
    # One of each kind: pods of one workload with the same reasons show the same.
    kinds = {
        (pods[pod_left.pod.uid]["metadata"]["labels"].get("app"), pod_left.reasons): pod_left
        for pod_left in reversed(plan.unschedulable)
    }
    chosen = sorted(kinds.values(), key=lambda kind: kind.pod)[:_MOST_TRIED]
    for pod_left in chosen:
        places = []
        for world in worlds:
            places.append(trials.place_for(pods[pod_left.pod.uid], world))
            if not places[-1]:
                break
        if all(places):
            found.append(
                f"{pod_left.pod.uid} at {places[0]}, refused: {'; '.join(pod_left.reasons)}"
            )
    return len(chosen), tuple(found)


def _by_itself(case: Json, plan: Plan, snapshot: ClusterSnapshot, places: dict[str, str]) -> bool:
    """Return whether the scheduler alone finds room for all on the plan's cheapest nodes."""
    pods = [pod for pod in case["pods"] if pod["metadata"]["uid"] in places]
    world = build(case, plan, snapshot, [node.options[0] for node in plan.nodes])
    pods.sort(
        key=lambda entry: (
            -(entry["spec"].get("priority") or 0),
            entry["metadata"]["creationTimestamp"],
            entry["metadata"]["uid"],
        )
    )
    for pod in pods:
        name = world.free_choice(pod)
        if not name:
            return False
        world.bind(pod, name)
    return True
