"""What is no plan is told: rules that are broken, prices that the catalogue does not have."""

from dataclasses import replace
from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType, OfferingKey
from shared.model.policy import PreferencePolicy
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from tests.peers.answers import Answer, Machine
from tests.peers.cases import FAMILIES, THREE_ZONES, linear_types, needs
from tests.peers.judge import judge, kept_preferences
from tests.peers.problems import Problem, Workload
from tests.peers.sides import ask_dovetail

LABELS = {"app": "web"}
SELECTOR = {"matchLabels": LABELS}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ZONES = ("test-zone-1", "test-zone-2", "test-zone-3")


def problem(replicas: int, **spec: Any) -> Problem:
    requests = {"requests": {"cpu": "900m", "memory": "1Gi"}}
    template = {
        "metadata": {"labels": LABELS},
        "spec": {"containers": [{"name": "main", "resources": requests}], **spec},
    }
    return Problem(
        name="small",
        workloads=(Workload(name="web", replicas=replicas, template=template),),
        requirements=(needs(keys.CAPACITY_TYPE, "In", "on-demand"),),
        instance_types=linear_types()[:200],
    )


def machine(*pods: int, zones: tuple[str, ...] = ZONES[:1], cpus: int = 1) -> Machine:
    name = f"fake-it-{cpus - 1}"
    (found,) = (entry for entry in linear_types() if entry.name == name)
    return Machine(
        options=tuple(
            OfferingKey(instance_type=name, zone=zone, capacity_type=CapacityType.ON_DEMAND)
            for zone in zones
        ),
        price_micros_per_hour=found.offerings[0].price_micros_per_hour,
        pods=tuple(f"web-{number}" for number in pods),
    )


def spread(policy: str = "DoNotSchedule") -> dict[str, Any]:
    rule = {"maxSkew": 1, "topologyKey": keys.ZONE, "labelSelector": SELECTOR}
    return {"topologySpreadConstraints": [{**rule, "whenUnsatisfiable": policy}]}


def affinity(kind: str, key: str) -> dict[str, Any]:
    return {"affinity": {kind: {REQUIRED: [{"topologyKey": key, "labelSelector": SELECTOR}]}}}


TOGETHER = affinity("podAffinity", keys.ZONE)
APART = affinity("podAntiAffinity", keys.HOSTNAME)


@pytest.mark.parametrize(
    ("spec", "machines"),
    [
        ({}, [machine(0), machine(1, zones=ZONES)]),
        ({}, [machine(0, 1, cpus=2)]),
        (spread(), [machine(0), machine(1, zones=ZONES[1:2])]),
        (TOGETHER, [machine(0), machine(1)]),
        (APART, [machine(0), machine(1)]),
    ],
)
def test_a_right_answer_breaks_nothing(spec: dict[str, Any], machines: list[Machine]) -> None:
    assert not judge(problem(2, **spec), Answer(machines=tuple(machines)))


@pytest.mark.parametrize(
    ("spec", "machines", "broken"),
    [
        (TOGETHER, [machine(0), machine(1, zones=ZONES[1:2])], "are in several"),
        (TOGETHER, [machine(0), machine(1, zones=ZONES)], "zone not known"),
        (spread(), [machine(0), machine(1, zones=ZONES)], "zone not known"),
        (spread(), [machine(0), machine(1), machine(zones=ZONES[1:2])], "beyond the allowed skew"),
        (APART, [machine(0, 1, cpus=2)], "must not be with"),
        ({}, [machine(0, 1)], "too small"),
        ({}, [machine(0), replace(machine(1), price_micros_per_hour=1)], "prices"),
        ({}, [machine(0), machine(1, cpus=399)], "does not have"),
        ({}, [machine(0), machine(1, zones=("test-zone-9",))], "does not have"),
        ({}, [machine(0)], "other than once"),
        ({}, [machine(0), machine(1), machine(1)], "other than once"),
        ({}, [machine(0), machine(1), machine(2)], "problem does not have"),
        ({"nodeSelector": {keys.ZONE: ZONES[2]}}, [machine(0, 1, cpus=2)], "does not select"),
    ],
)
def test_a_wrong_answer_is_told(spec: dict[str, Any], machines: list[Machine], broken: str) -> None:
    found = judge(problem(2, **spec), Answer(machines=tuple(machines)))
    assert [name for name in found if broken in name]


def test_a_pool_is_kept_to() -> None:
    asked = problem(1)
    spot = replace(asked, requirements=(needs(keys.CAPACITY_TYPE, "In", "spot"),))
    assert judge(spot, Answer(machines=(machine(0),))) == {
        "options that the pool does not allow": 1
    }


def test_soft_spreads_that_are_kept_are_counted() -> None:
    asked = problem(3, **spread("ScheduleAnyway"))
    even = Answer(machines=tuple(machine(n, zones=ZONES[n : n + 1]) for n in range(3)))
    crowded = Answer(machines=(machine(0), machine(1), machine(2), machine(zones=ZONES[1:2])))
    assert kept_preferences(asked, even) == (3, 3)
    assert kept_preferences(asked, crowded) == (0, 3)


@pytest.mark.parametrize("policy", [PreferencePolicy.RESPECT, PreferencePolicy.WEIGH])
@pytest.mark.parametrize("family", ["soft-apart", "soft-spread"])
def test_a_plan_tells_the_preferences_that_it_keeps(family: str, policy: PreferencePolicy) -> None:
    asked = FAMILIES[family](60, 2)
    settings = PackingSettings(preference_policy=policy)
    (found,) = ask_dovetail(asked, settings)
    told = decide(asked.snapshot(), settings).preferences
    assert kept_preferences(asked, found) == (told.kept, told.stated)


@pytest.mark.parametrize("family", ["S10", "kmix", "constr", "gpumix", "topo", "spread"])
def test_dovetails_own_plans_break_nothing(family: str) -> None:
    asked = FAMILIES[family](60, 2)
    (found,) = ask_dovetail(asked)
    assert not judge(asked, found)
    assert found.bound_micros_per_hour <= found.price_micros_per_hour


def test_both_sides_are_told_the_same() -> None:
    asked = FAMILIES["topo-3-zones"](40, 1)
    snapshot = asked.snapshot()
    assert {pod.name for pod in snapshot.pending} == {
        pod for workload in asked.workloads for pod in workload.pods
    }
    zones = {offering.zone for entry in snapshot.instance_types for offering in entry.offerings}
    assert zones == set(THREE_ZONES)
