"""A timer that was started under the last release goes on under its definition, with new code."""

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.kube.api import ExpiredError
from shared.model import labels as keys
from shared.model.errors import RetryableError, UnavailableError
from shared.node_lifecycle.emptiness import Emptiness
from shared.node_lifecycle.expiration import Expiration
from shared.node_lifecycle.registration import Registration
from shared.node_lifecycle.termination import Termination
from tests.builders import NOW, instance, node, provisioner
from tests.unit.worlds import World

RELEASE = Path(__file__).resolve().parents[2] / "data" / "release"
STATES: Mapping[str, Mapping[str, Any]] = json.loads((RELEASE / "timer_states.json").read_text())
MOST_STEPS = 50
RESULTS = {
    "emptiness": "removed",
    "expiration": "removed",
    "registration": "never joined",
    "termination": "terminated",
}
Step = Callable[[dict[str, Any]], dict[str, Any]]


def definitions() -> dict[str, dict[str, Any]]:
    """Return the last release's definition of each state machine, by its function's name."""
    template = json.loads((RELEASE / "DovetailControlPlane.template.json").read_text())
    return {
        logical_id.split("Machine")[0].lower(): json.loads(
            resource["Properties"]["DefinitionString"]
        )
        for logical_id, resource in template["Resources"].items()
        if resource["Type"] == "AWS::StepFunctions::StateMachine"
    }


def play(
    definition: Mapping[str, Any], state: dict[str, Any], step: Step, wait: Callable[[float], None]
) -> dict[str, Any]:
    """Run an execution as Step Functions would, as far as our definitions go."""
    name = definition["StartAt"]
    for _ in range(4 * MOST_STEPS):
        at = definition["States"][name]
        match at["Type"]:
            case "Wait":
                wait(state[at["SecondsPath"].removeprefix("$.")])
            case "Task":
                state = json.loads(json.dumps(tried(at, state, step, wait)))
            case "Choice":
                name = next(
                    (
                        choice["Next"]
                        for choice in at["Choices"]
                        if state[choice["Variable"].removeprefix("$.")] == choice["StringEquals"]
                    ),
                    at["Default"],
                )
                continue
            case "Succeed":
                return state
        name = at["Next"]
    raise AssertionError(f"no end after {MOST_STEPS} steps: {state}")


def tried(
    task: Mapping[str, Any], state: dict[str, Any], step: Step, wait: Callable[[float], None]
) -> dict[str, Any]:
    """Take a step; errors the definition knows are repeated, others end the execution."""
    (retry,) = task["Retry"]
    while True:
        try:
            return step(state)
        except RetryableError as error:
            if type(error).__name__ not in retry["ErrorEquals"]:
                raise
            wait(retry["IntervalSeconds"])


def world_of(kind: str) -> World:
    """Return a world in which the timer's node is due: empty, old, silent, or being deleted."""
    due: dict[str, dict[str, Any]] = {
        "emptiness": {"annotations": {keys.EMPTINESS_TIMESTAMP: NOW.isoformat()}},
        "registration": {"ready": False, "labels": {keys.PROVISIONER_NAME: "default"}},
        "termination": {"deletion_at": NOW},
    }
    owner = provisioner(ttl_after_empty=timedelta(seconds=30), ttl_until_expired=timedelta(days=1))
    world = World(owner, node(uid="n1", **due.get(kind, {})))
    world.cloud.add(instance())
    return world


def taking(kind: str, world: World) -> Step:
    """Return the present code's step of a timer; the first call finds the cluster unreachable."""
    services: dict[str, Callable[[], Any]] = {
        "emptiness": lambda: Emptiness(world.ports),
        "expiration": lambda: Expiration(world.ports),
        "registration": lambda: Registration(world.ports),
        "termination": lambda: Termination(world.ports, None),
    }
    failures = [UnavailableError("the API server does not answer")]

    def step(state: dict[str, Any]) -> dict[str, Any]:
        if failures:
            raise failures.pop()
        world.cluster.kubelets_stop_pods()
        answer: dict[str, Any] = services[kind]().step(state)
        return answer

    return step


@pytest.mark.parametrize("kind", sorted(RESULTS))
def test_an_execution_of_the_last_release_ends_with_the_present_code(kind: str) -> None:
    world = world_of(kind)
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        world.advance(timedelta(seconds=seconds))

    end = play(definitions()[kind], dict(STATES[kind]), taking(kind, world), wait)

    assert (end["next"], end["result"]) == ("done", RESULTS[kind])
    assert len(waited) >= 2
    if kind == "termination":
        assert world.cluster.nodes() == ()
        assert world.alive == []


def test_every_error_the_present_code_repeats_is_repeated_by_executions_that_run() -> None:
    """A new kind of error would end the timers of the last release: it needs a former name."""
    # What a list that expires ends with has a former name: shared.kube.lists sees to that.
    ours = {subclass.__name__ for subclass in RetryableError.__subclasses__()} - {
        ExpiredError.__name__
    }

    assert len(ours) >= 4
    for kind, definition in definitions().items():
        (retry,) = definition["States"]["Step"]["Retry"]
        assert ours <= set(retry["ErrorEquals"]), kind


def test_an_execution_with_an_error_its_definition_does_not_know_would_be_noticed() -> None:
    definition = json.loads(json.dumps(definitions()["termination"]))
    definition["States"]["Step"]["Retry"][0]["ErrorEquals"].remove("UnavailableError")
    world = world_of("termination")

    with pytest.raises(UnavailableError):
        play(definition, dict(STATES["termination"]), taking("termination", world), lambda _: None)
