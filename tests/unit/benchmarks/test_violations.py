"""What looks over the plans of the benchmark finds each kind of broken rule."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from shared.model import labels as keys
from shared.model.kubernetes.pods import Pod
from shared.model.plan import Plan
from shared.planning.decide import decide
from tests import builders as make
from tests.benchmarks.planning import clusters
from tests.benchmarks.planning.violations import violations

A, B, C = make.ZONES
WEB = make.selector(app="web")


def plan(*nodes: tuple[str, Sequence[Pod]], **overrides: Any) -> Plan:
    """Return a plan of nodes, each in a zone (or several, `a+b`), with these pods."""
    made = tuple(
        make.planned(*pods, options=tuple(make.option(zone=part) for part in zone.split("+")))
        for zone, pods in nodes
    )
    cost = sum(node.price_micros_per_hour for node in made)
    return Plan(nodes=made, **{"cost_micros_per_hour": cost, **overrides})


def broken(made: Plan, *pods: Pod) -> Counter[str]:
    return violations(make.snapshot(*pods), made)


def test_a_plan_that_keeps_everything_has_nothing_broken() -> None:
    snapshot = clusters.many_classes(60)
    assert not violations(snapshot, decide(snapshot))


def test_pods_are_counted() -> None:
    first, second = make.pods(2)
    assert broken(plan((A, [first])), first, second) == {"pods not placed exactly once": 1}
    twice = plan((A, [first]), (A, [first]))
    assert broken(twice, first)["pods not placed exactly once"] == 1
    assert broken(plan((A, [first, second])), first)["pods not requested"] == 1


def test_room_is_looked_at_in_every_option() -> None:
    large = make.pod(cpu=1901)
    assert broken(plan((A, [large])), large) == {"nodes too small": 1}


def test_the_cost_is_added_up() -> None:
    pod = make.pod()
    assert broken(plan((A, [pod]), cost_micros_per_hour=1), pod) == {"wrong cost": 1}


def test_zones_must_be_even_and_sure() -> None:
    pods = make.pods(3, spreads=(make.spread(keys.ZONE),))
    assert not broken(
        plan(*((zone, [pod]) for zone, pod in zip((A, B, C), pods, strict=True))), *pods
    )
    uneven = plan((A, pods[:2]), (B, pods[2:]), (C, [other := make.pod("other", labels={})]))
    assert broken(uneven, *pods, other) == {"skew over zones": 1}
    unsure = plan((f"{A}+{B}", pods))
    assert broken(unsure, *pods) == {"zone not sure": 3}


def test_hosts_must_be_even() -> None:
    pods = make.pods(3, spreads=(make.spread(keys.HOSTNAME),))
    assert not broken(plan((A, pods[:1]), (A, pods[1:2]), (A, pods[2:])), *pods)
    assert broken(plan((A, pods[:2]), (A, pods[2:])), *pods) == {"skew over hosts": 1}


def test_like_wants_its_zone() -> None:
    pods = make.pods(3, affinity=(make.affinity(keys.ZONE),))
    assert not broken(plan((A, pods[:1]), (A, pods[1:])), *pods)
    assert broken(plan((A, pods[:2]), (B, pods[2:])), *pods) == {"affinity": 1}
    stray = make.pod("z", labels={"app": "db"}, affinity=(make.affinity(keys.ZONE),))
    assert broken(plan((A, pods), (B, [stray])), *pods, stray) == {"affinity": 1}


def test_hosts_are_kept_apart_in_both_directions() -> None:
    alone = make.pod("alone", anti_affinity=(make.affinity(),))
    other = make.pod("other")
    assert not broken(plan((A, [alone]), (A, [other])), alone, other)
    assert broken(plan((A, [other, alone])), alone, other) == {"anti-affinity": 1}
    assert broken(plan((A, [alone, other])), alone, other) == {
        "anti-affinity of pods that are there": 1
    }
    given = tuple(make.ref(pod) for pod in (other, alone))
    assert broken(plan((A, [alone, other]), order=given), alone, other) == {"anti-affinity": 1}


def test_the_order_of_binding_has_every_pod_once() -> None:
    first, second = make.pods(2)
    made = plan((A, [first, second]), order=(make.ref(first),))
    assert broken(made, first, second)["pods not bound exactly once"] == 1


def test_the_mix_of_constraints_has_a_fifth_of_each() -> None:
    pods = clusters.topo(100).pending
    assert len(pods) == 100
    assert sum(bool(pod.scheduling.spreads) for pod in pods) == 40
    assert sum(bool(pod.scheduling.affinity) for pod in pods) == 20
    assert sum(bool(pod.scheduling.anti_affinity) for pod in pods) == 20
