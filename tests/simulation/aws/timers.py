"""Step Functions in virtual time: an interpreter of the state machines' own definition."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.simulation.aws.delivery import Caller
from tests.simulation.schedule.faults import Action, CallFaults, Site
from tests.simulation.schedule.kernel import Kernel, Killed
from tests.simulation.schedule.seeded_random import draw

_DEFINITION: Final = Path("infra/aws/state_machines/timer.asl.json")
STATES: Final[Mapping[str, Any]] = json.loads(
    (Path(__file__).parents[3] / _DEFINITION).read_text(encoding="utf-8")
)
_SECOND: Final = 1_000_000


@dataclass
class Execution:
    """One running timer."""

    function: str
    name: str
    number: int
    document: dict[str, Any]
    tries: int = 0
    step: int = 0


@dataclass
class Timers:
    """All executions.

    Attributes:
        running: By name.
        taken: Names that were ever used, with their kind.
        failed: Executions that ended by an error that is not retried.
        lost: Executions that ended by accident.
    """

    kernel: Kernel
    faults: CallFaults
    call: Caller
    running: dict[str, Execution] = field(default_factory=dict)
    taken: set[tuple[str, str]] = field(default_factory=set)
    failed: list[str] = field(default_factory=list)
    lost: int = 0
    started: int = 0

    def start(self, kind: str, name: str, payload: Mapping[str, Any]) -> bool:
        """Start an execution; return False when the name is taken."""
        if (kind, name) in self.taken:
            return False
        self.taken.add((kind, name))
        self.started += 1
        site = Site("timer", "execution", kind)
        if self.faults.event(site, self.kernel.time, (Action.LOST, 0.01)) is not None:
            self.lost += 1
            return True
        execution = Execution(kind, name, self.started, dict(payload))
        self.running[name] = execution
        self._enter(execution, STATES["StartAt"])
        return True

    def _enter(self, execution: Execution, name: str) -> None:
        state = STATES["States"][name]
        match state["Type"]:
            case "Wait":
                seconds = float(execution.document[state["SecondsPath"].removeprefix("$.")])
                self.kernel.after(seconds + 0.05, lambda: self._enter(execution, state["Next"]))
            case "Task":
                self._task(execution, state)
            case "Choice":
                self._enter(execution, _choose(state, execution.document))
            case "Succeed":
                self.running.pop(execution.name, None)
            case other:
                raise AssertionError(f"the interpreter knows no state {other}")

    def _task(self, execution: Execution, state: Mapping[str, Any]) -> None:
        execution.step += 1
        site = Site("timer", "step", execution.function)
        if self.faults.event(site, self.kernel.time, (Action.DIES, 0.004)) is not None:
            self.lost += 1
            self.running.pop(execution.name, None)
            return

        def over(outcome: Any) -> None:
            if isinstance(outcome, dict):
                execution.document, execution.tries = outcome, 0
                self._enter(execution, state["Next"])
            else:
                self._retry(execution, state, error_name(outcome))

        self.call(execution.function, dict(execution.document), over)

    def _retry(self, execution: Execution, state: Mapping[str, Any], error: str) -> None:
        for rule in state["Retry"]:
            if error in rule["ErrorEquals"] and execution.tries < rule["MaxAttempts"]:
                longest = min(
                    rule["IntervalSeconds"] * rule["BackoffRate"] ** min(execution.tries, 20),
                    rule["MaxDelaySeconds"],
                )
                execution.tries += 1
                part = draw(self.faults.seed, "jitter", execution.number, execution.step)
                self.kernel.after(longest * part, lambda: self._task(execution, state))
                return
        self.failed.append(f"{execution.function} {execution.document}: {error}")
        self.running.pop(execution.name, None)


def error_name(outcome: BaseException) -> str:
    """Return the name Step Functions knows an error of a function by."""
    return "Runtime.ExitError" if isinstance(outcome, Killed) else type(outcome).__name__


def _choose(state: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    for choice in state["Choices"]:
        if document.get(choice["Variable"].removeprefix("$.")) == choice["StringEquals"]:
            return str(choice["Next"])
    return str(state["Default"])


Start = Callable[[str, str, Mapping[str, Any]], bool]
