"""The simulator itself: the same seed is the same schedule, and it calls what Lambda calls."""

import importlib
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.model.errors import ThrottledError
from shared.ports import TimerKind
from shared.runtime.threads import Threads
from tests.simulation.aws.delivery import LIMITS, MAX_RECEIVES
from tests.simulation.aws.functions import HANDLERS
from tests.simulation.aws.timers import STATES, Timers
from tests.simulation.campaigns.campaign import kept
from tests.simulation.campaigns.crash_points import SCENES
from tests.simulation.campaigns.swapping import swapped
from tests.simulation.laws.launches import ViolationError
from tests.simulation.laws.rights import within_rights
from tests.simulation.schedule.faults import Action, CallFault, CallFaults, Site
from tests.simulation.schedule.kernel import Kernel, Killed, Process
from tests.simulation.schedule.running import Outcome, run_scene, run_seed, shrink
from tests.simulation.schedule.scenario import draw_scene
from tests.simulation.schedule.world import World


def test_the_same_seed_is_the_same_schedule() -> None:
    first, second = run_seed(5, log=True), run_seed(5, log=True)
    assert first.log == second.log
    assert first.fired == second.fired
    assert first.counts


def test_the_faults_that_fired_are_the_whole_schedule() -> None:
    first = run_seed(6, log=True)
    faults = CallFaults(seed=6, exact=frozenset(first.fired))
    assert run_scene(first.scene, faults, log=True).log == first.log


@pytest.mark.parametrize("name", sorted(HANDLERS))
def test_functions_are_their_own_handlers(name: str) -> None:
    module = importlib.import_module(f"functions.{name}.handler")
    assert HANDLERS[name].__module__ == module.__name__
    assert HANDLERS[name].__name__ == "handler"


def test_functions_are_called_as_the_stack_says() -> None:
    from infra.aws.components import queues
    from infra.aws.functions import FUNCTIONS

    plans = {function_plan.name: function_plan for function_plan in FUNCTIONS}
    assert set(plans) - set(LIMITS) == {"refresh_catalog"}
    for name, limits in LIMITS.items():
        assert limits.timeout_seconds == plans[name].timeout_seconds
        assert limits.retries == plans[name].async_retries
    assert queues.MAX_RECEIVES == MAX_RECEIVES


def test_a_broken_schedule_is_shrunk_to_the_faults_that_matter() -> None:
    site = Site("provision", "cloud", "create_fleet")
    culprit = CallFault(site, 1, Action.TIMEOUT_AFTER)
    others = [CallFault(Site("sweep", "cluster", "nodes"), n, Action.ERROR) for n in range(1, 5)]

    def breaks(outcome: Outcome) -> Outcome:
        if culprit in outcome.fired:
            outcome.broken = "planted"
        return outcome

    def run(scene: Any, faults: CallFaults, *, log: bool = False) -> Outcome:
        return breaks(run_scene(scene, faults, log=log))

    whole = run(SCENES[0], CallFaults.only([culprit, *others], 0))
    assert len(whole.fired) == 5
    from tests.simulation.schedule import running

    with swapped(running, run_scene=run):
        assert shrink(whole).fired == (culprit,)


def test_time_passes_only_when_a_process_waits_and_others_continue_meanwhile() -> None:
    kernel, seen = Kernel(), []

    def process(name: str, span: int) -> None:
        one = Process(name, len(name), 0, 10**9, timedelta(0))

        def body() -> str:
            for _ in range(2):
                kernel.pause(span)
                seen.append((name, kernel.time))
            return name

        kernel.start(one, body, seen.append)

    kernel.after(0, lambda: process("slow", 30))
    kernel.after(0, lambda: process("quick!", 20))
    kernel.run_until(100)
    assert seen == [
        ("quick!", 20),
        ("slow", 30),
        ("quick!", 40),
        "quick!",
        ("slow", 60),
        "slow",
    ]


def test_a_process_that_lasts_too_long_is_killed_at_its_deadline() -> None:
    kernel: Kernel = Kernel()
    ended: list[Any] = []
    process = Process("late", 1, 0, 50, timedelta(0))
    kernel.after(0, lambda: kernel.start(process, lambda: kernel.pause(80), ended.append))
    kernel.run_until(100)
    assert isinstance(ended[0], Killed)


def test_calls_of_a_thread_that_the_kernel_does_not_run_are_refused() -> None:
    """Real threads would make calls in an order that no seed decides."""
    world, ended = World(draw_scene(1), CallFaults(1, share=0)), list[Any]()
    ledger = world.recorder.port("ledger", world.ledger)

    def body() -> list[bool]:
        return Threads().each(ledger.is_held, ["one", "two"])

    process = Process("replacement", 1, 0, 10**9, timedelta(0))
    world.kernel.after(0, lambda: world.kernel.start(process, body, ended.append))
    world.kernel.run_until(1_000_000)
    world.kernel.end()
    assert "a thread that the kernel does not run" in str(ended[0])


def test_a_part_of_the_campaign_that_was_run_before_is_read(tmp_path: Path) -> None:
    runs: list[int] = []

    def part(first: int, *, last: int) -> list[int]:
        runs.append(first)
        return [first, last]

    assert [kept(tmp_path, "part", part, 1, last=5) for _ in range(2)] == [[1, 5], [1, 5]]
    assert kept(tmp_path, "another", part, 6, last=9) == [6, 9]
    assert runs == [1, 6]


class Function:
    """Answers what it is told, in order."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.inputs: list[Mapping[str, Any]] = []

    def __call__(self, function: str, event: Mapping[str, Any], over: Any) -> None:
        self.inputs.append(event)
        over(self.answers.pop(0))


def timer(*answers: Any) -> tuple[Kernel, Timers, Function]:
    kernel, function = Kernel(), Function(*answers)
    timers = Timers(kernel, CallFaults.only((), 0), function)
    assert timers.start("emptiness", "name", {"wait_seconds": 5, "next": "wait"})
    return kernel, timers, function


def test_a_timer_waits_steps_and_ends_as_its_definition_says() -> None:
    assert STATES["StartAt"] == "Wait"
    again, done = {"wait_seconds": 7, "next": "wait"}, {"wait_seconds": 0, "next": "done"}
    kernel, timers, function = timer(again, done)
    kernel.run_until(4_000_000)
    assert function.inputs == []
    kernel.run_until(6_000_000)
    assert len(function.inputs) == 1
    kernel.run_until(13_000_000)
    assert function.inputs[1] == again
    assert not timers.running
    assert not timers.start("emptiness", "name", {})


def test_a_timer_repeats_a_step_that_was_throttled_and_fails_on_a_defect() -> None:
    kernel, timers, function = timer(ThrottledError("slow"), Killed(), KeyError("defect"))
    kernel.run_until(60_000_000)
    assert len(function.inputs) == 3
    assert timers.failed
    assert not timers.running


@pytest.mark.parametrize(
    ("function", "port", "method", "args"),
    [
        ("bind", "outbox", "wake", ("test", timedelta(0))),
        ("provision", "outbox", "start_timer", (TimerKind.TERMINATION, "name", {})),
        ("provision", "cluster", "delete_node", ()),
        ("provision", "cloud", "terminate", ()),
        ("sweep", "cluster", "what_no_list_knows", ()),
    ],
)
def test_a_call_for_which_a_function_has_no_right_is_a_violation(
    function: str, port: str, method: str, args: tuple[Any, ...]
) -> None:
    process = Process(function, 1, 0, 10**9, timedelta(0))
    with pytest.raises(ViolationError, match=f"rights: {function} may not"):
        within_rights(process, Site(function, port, method), args)
