"""The world of the traces: scheduler, controllers, bound, and a few hours played."""

import dataclasses

import pytest

from shared.model import labels as keys
from tests.builders import GIB
from tests.simulation.schedule.kernel import START
from tests.weeks import drawn
from tests.weeks.bound import Step, bounds_of, seconds_of_boots
from tests.weeks.drawn import DRAWN, apart, drawn_by, spread
from tests.weeks.kubelets import BOOT_SECONDS
from tests.weeks.meter import measured
from tests.weeks.scheduler import Nodes
from tests.weeks.storage import Storage
from tests.weeks.traces import HOUR, Change, Trace
from tests.weeks.workloads import Raw, Workload
from tests.weeks.world import WeeksWorld, instance_types

_C6A = ("c6a",)


def node(name: str, zone: str = "us-east-1a", cpu: str = "4", memory: str = "16Gi") -> Raw:
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone}
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": "20"}},
    }


def nodes_of(*raws: Raw) -> Nodes:
    return Nodes(raws, [], Storage())


def pods(count: int, **more: object) -> list[Raw]:
    workload = Workload(name="web", **more)  # type: ignore[arg-type]
    return [workload.raw_pod(number) for number in range(count)]


def test_scheduler_prefers_the_node_with_most_room_left() -> None:
    nodes = nodes_of(node("large"), node("small", cpu="2", memory="8Gi"))
    assert nodes.place(pods(1)[0]) == "large"


def test_scheduler_spreads_pods_of_one_owner_over_nodes_that_are_alike() -> None:
    nodes = nodes_of(node("a"), node("b"))
    assert sorted(nodes.place(pod) for pod in pods(2)) == ["a", "b"]


@pytest.mark.parametrize(
    ("extra", "places"),
    [
        pytest.param({"affinity": apart("web")}, ["", "a", "b"], id="anti-affinity"),
        pytest.param(
            {"topologySpreadConstraints": [spread("web", "kubernetes.io/hostname", hard=True)]},
            ["a", "b", "b"],
            id="spread",
        ),
    ],
)
def test_scheduler_keeps_the_rules_of_pods(extra: Raw, places: list[str]) -> None:
    nodes = nodes_of(node("a"), node("b"))
    assert sorted(nodes.place(pod) for pod in pods(3, extra=extra)) == places


def test_pod_without_room_goes_nowhere() -> None:
    assert nodes_of(node("a")).place(pods(1, cpu=5000)[0]) == ""


def trace_of(workload: Workload, *changes: Change, hours: float = 0.5) -> Trace:
    return Trace(
        name="one", hours=hours, families=_C6A, workloads=(workload,), changes=changes, said=""
    )


def test_bound_is_the_price_of_the_cheapest_nodes_for_what_is_wanted() -> None:
    workload = Workload(name="web", cpu=1000, memory=GIB // 4)
    trace = trace_of(workload, Change(0, "web", 1), Change(3600, "web", 0), hours=2.0)
    cheapest = min(
        way.price_micros_per_hour
        for kind in instance_types(_C6A)
        for way in kind.offerings
        if kind.allocatable["cpu"] >= 1050
    )
    moving, booting = bounds_of(trace)
    assert moving == pytest.approx(cheapest / 1e6)
    assert booting == pytest.approx(moving * (1 + BOOT_SECONDS[0] / 3600))


@pytest.mark.parametrize(
    ("steps", "dollars"),
    [
        pytest.param([(100, 0), (100, 5)], 5 * 20, id="boot"),
        pytest.param([(100, 5), (100, 3), (100, 5)], 5 * 20 + 2 * 20, id="boot-again"),
        pytest.param([(100, 5), (8, 3), (100, 5)], 5 * 20 + 2 * 8, id="kept"),
        pytest.param([(100, 5), (8, 1), (8, 3), (100, 7)], 7 * 20 + 2 * 8 + 2 * 16, id="levels"),
    ],
)
def test_nodes_boot_or_are_kept_level_by_level(steps: list[tuple[int, int]], dollars: int) -> None:
    assert seconds_of_boots([Step(*step) for step in steps], 20) == dollars


def test_pods_of_jobs_are_wanted_until_they_have_run() -> None:
    job = Workload(name="job", kind="Job", seconds=60)
    wanted = list(trace_of(job, Change(5, "job", 3)).wanted())
    assert wanted == [(5, {"job": 3}), (65, {"job": 0})]


@pytest.mark.parametrize("draw", DRAWN, ids=lambda draw: draw.__name__)
def test_drawn_trace_is_small_enough_and_the_same_for_the_same_seed(draw: drawn.Draw) -> None:
    trace = draw(3)
    assert trace == draw(3)
    assert trace.changes != draw(4).changes
    pods_at_once = [sum(now.values()) for _, now in trace.wanted()]
    assert 5 <= max(pods_at_once) <= 200


def test_text_decides_which_further_traces_are_drawn() -> None:
    names = {tuple(trace.name for trace, _ in drawn_by(words)) for words in "abcd"}
    assert len(names) > 1
    assert list(drawn_by("a")) == list(drawn_by("a"))


def test_rollout_keeps_three_quarters_of_the_pods_ready() -> None:
    workload = Workload(name="web", cpu=500, starts_seconds=10)
    changes = (Change(5, "web", 8), Change(900, "web", 8, rolls=True))
    world = WeeksWorld(trace_of(workload, *changes), 1, "30s")
    world.play()
    states: dict[str, bool] = {}
    least = 8
    for time, old, new in world.cluster.log:
        pod = new or old
        assert pod is not None
        states[pod.uid] = new is not None and new.ready and not new.is_terminating
        if time > 880e6:
            least = min(least, sum(states[uid] for uid in states if "-web-" in uid))
    assert least >= 6
    assert {pod.labels["revision"] for pod in world.cluster.pods_of("web")} == {"2"}


def test_volume_keeps_the_pods_of_its_name_in_its_zone() -> None:
    workload = Workload(name="db", kind="StatefulSet", volumes=True, starts_seconds=3)
    changes = (Change(5, "db", 2), Change(600, "db", 0), Change(1000, "db", 2))
    world = WeeksWorld(trace_of(workload, *changes), 1, "30s")
    world.play()
    zones: dict[str, set[str]] = {}
    labels = {
        new.name: new.labels
        for _, _, new in world.cluster.node_log
        if new is not None and new.labels.get(keys.ZONE)
    }
    for _, _, pod in world.cluster.log:
        if pod is not None and pod.ready and pod.labels["app"] == "db":
            zones.setdefault(pod.name, set()).add(labels[pod.node_name][keys.ZONE])
    assert [len(found) for found in zones.values()] == [1, 1]
    assert len(world.cluster.storage.volumes) == 2


def test_hours_of_a_trace_are_played_to_the_same_end_twice() -> None:
    trace = dataclasses.replace(drawn.services(1), hours=0.5)
    first, second = (_played(trace) for _ in range(2))
    assert first == second


def test_hours_of_a_trace_cost_more_than_the_bound_and_leave_no_pod_waiting() -> None:
    trace = dataclasses.replace(drawn.shop(1), hours=0.5)
    dollars, waiting, launched = _played(trace)
    assert dollars > bounds_of(trace).moving
    assert not waiting
    assert launched


def _played(trace: Trace) -> tuple[float, int, int]:
    world = WeeksWorld(trace, 1, "30s")
    world.play()
    assert (world.kernel.now() - START).total_seconds() == trace.hours * HOUR
    played = measured(world, 0)
    return played.dollars, played.waiting, played.launched
