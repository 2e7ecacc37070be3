"""The functions: their real handlers, with the ports of the model where adapters would be.

Powertools' decorators are taken off (they write logs and metrics); everything below them is what
runs in Lambda: handler, runtime, service.
"""

import contextlib
import functools
import importlib
import inspect
import itertools
import json
import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from infra.aws.functions import FUNCTIONS
from shared.disruption.settings import SAVING_ALONE
from shared.instance_types.ami_families import al2023
from shared.model.errors import AutoscalerError
from shared.model.values import replace
from shared.provisioning.decisions import record
from shared.runtime import logs_and_metrics
from shared.settings import FunctionSettings
from tests.simulation.aws.delivery import LIMITS, Event
from tests.simulation.campaigns.swapping import swapped
from tests.simulation.schedule.faults import Action, Site
from tests.simulation.schedule.kernel import Kernel, Killed, Process
from tests.simulation.schedule.recorder import Recorder
from tests.simulation.schedule.seeded_random import between, whole

_SETTINGS: Final[Mapping[str, type[FunctionSettings]]] = {
    plan.name: plan.settings for plan in FUNCTIONS if plan.uses_ledger
}
MODULES: Final = {name: importlib.import_module(f"functions.{name}.handler") for name in _SETTINGS}
_LOADERS: Final = {name: inspect.unwrap(module.load_runtime) for name, module in MODULES.items()}
HANDLERS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    name: inspect.unwrap(module.handler) for name, module in MODULES.items()
}
_PROVISION: Final = importlib.import_module("shared.provisioning.provision")
_ENVIRONMENT: Final = {
    "table": "table",
    "bucket": "bucket",
    "queue_url": "https://queue",
    "dead_letter_url": "https://dead-letters",
    "bind_function": "bind",
    "provision_function": "provision",
    "sweep_function": "sweep",
    **{
        f"{value}_machine": f"arn:aws:states:us-east-1:1:stateMachine:{value}"
        for value in ("emptiness", "expiration", "registration", "replacement", "termination")
    },
}


# How often the clock of an invocation is wrong by up to five minutes: once in some schedules.
_WRONG: Final = ((Action.SKEWED, 0.002),)
_MINUTES_WRONG: Final = 300.0


class _Compact:
    """Replaces json where only programs read the output."""

    @staticmethod
    def dumps(document: object, **_: object) -> str:
        return json.dumps(document, sort_keys=True)


class UnexpectedError(AssertionError):
    """A function ended by an error outside Dovetail's hierarchy: a defect."""


@dataclass(frozen=True)
class Context:
    """What Lambda passes beside the event."""

    kernel: Kernel
    process: Process
    aws_request_id: str

    def get_remaining_time_in_millis(self) -> int:
        return (self.process.deadline - self.kernel.time) // 1000


class Functions:
    """The Lambda service of one schedule.

    Args:
        wiring: Stands where shared.runtime.wiring.Wiring would.
        skew: Most seconds a function's clock is ahead or behind.
    """

    def __init__(
        self, kernel: Kernel, recorder: Recorder, wiring: object, *, skew: float, **settings: Any
    ) -> None:
        self._kernel = kernel
        self._recorder = recorder
        self._skew = skew
        self._numbers = itertools.count(1)
        self.plan_ids = itertools.count(1)
        self._of_kind: dict[str, int] = {}
        self.invocations = 0
        self.errors: dict[str, int] = {}
        # Errors of no tree that a test makes a cluster raise.
        self.expected: tuple[type[Exception], ...] = ()
        self.runtimes = {name: _runtime(name, wiring, settings) for name in MODULES}

    def __call__(self, function: str, event: Event, over: Callable[[Any], None]) -> None:
        """Run a function as a process of its own."""
        number = next(self._numbers)
        kind = self._of_kind[function] = self._of_kind.get(function, 0) + 1
        seed = self._recorder.faults.seed
        process = Process(
            function,
            number,
            whole(0, 10**6, seed, "salt", function, kind),
            self._kernel.time + LIMITS[function].timeout_seconds * 1_000_000,
            self._skew_of(function, kind),
        )
        context = Context(self._kernel, process, f"request-{number}")
        self.invocations += 1

        def done(outcome: Any) -> None:
            if isinstance(outcome, BaseException):
                name = type(outcome).__name__
                self.errors[name] = self.errors.get(name, 0) + 1
                if self._recorder.log is not None:
                    self._recorder.log.append(
                        f"{self._kernel.time / 1e6:9.3f} {function}#{number} ended: {outcome!r}"
                    )
                if isinstance(outcome, AssertionError):
                    raise outcome
                if not isinstance(outcome, (AutoscalerError, Killed, *self.expected)):
                    raise UnexpectedError(f"{function}: {outcome!r}") from outcome
            self._recorder.witness.ended(process, outcome)
            over(outcome)

        self._kernel.start(process, lambda: HANDLERS[function](event, context), done)

    def _skew_of(self, function: str, kind: int) -> timedelta:
        """Return how far the clock of an invocation is ahead: by seconds, seldom by minutes."""
        faults, site = self._recorder.faults, Site("clock", "minutes", function)
        wrong = faults.event(site, self._kernel.time, *_WRONG) is not None
        most = _MINUTES_WRONG if wrong else self._skew
        return timedelta(seconds=between(-most, most, faults.seed, "skew", function, kind))


def _runtime(name: str, wiring: object, settings: Mapping[str, Any]) -> Any:
    module = sys.modules[_LOADERS[name].__module__]
    made = "Wiring" if hasattr(module, "Wiring") else "ProvisioningWiring"
    environment = _environment(name, tuple(sorted(settings.items())))

    def given(*_: object, **__: object) -> object:
        return wiring

    with swapped(module, **{made: given, "environment": lambda: environment}):
        runtime = _LOADERS[name]()
    if name == "provision":
        # Tries to make a good plan better cost most of the time and none of the correctness.
        runtime._packing = replace(runtime._packing, improve_iterations=1)
        # The more changes of nodes, the more may go wrong.
        runtime._disruption = SAVING_ALONE
    return runtime


@functools.cache
def _environment(name: str, own: tuple[tuple[str, Any], ...]) -> Mapping[str, str]:
    """Return the environment of a function."""
    model = _SETTINGS[name]
    known = {k: v for k, v in {**_ENVIRONMENT, **dict(own)}.items() if k in model.__struct_fields__}
    return model(**known).to_environment()


@contextlib.contextmanager
def cut(functions: Functions, dead_letter: Callable[[str, str], None]) -> Iterator[None]:
    """Let the handlers find these runtimes, and nothing of them reach the outside."""

    def set_aside(records: Sequence[tuple[str, str]], **_: object) -> tuple[int, ...]:
        for text, reason in records:
            dead_letter(text, reason)
        return ()

    level = logging.getLogger(logs_and_metrics.logger.name).level
    with contextlib.ExitStack() as stack:
        for name, runtime in functions.runtimes.items():
            stack.enter_context(
                swapped(MODULES[name], load_runtime=lambda runtime=runtime: runtime)
            )
        stack.enter_context(
            swapped(
                sys.modules[_LOADERS["provision"].__module__],
                new_plan_id=lambda: f"plan-{next(functions.plan_ids):05}",
                send_dead_letters=set_aside,
            )
        )
        # To write every snapshot out would take half of all time; that it is written is a call.
        stack.enter_context(swapped(record, decision_document=lambda plan_id, *_: plan_id.encode()))
        # Indented, user data takes the slow way through the encoder.
        stack.enter_context(swapped(al2023, json=_Compact))
        # What the plan might cost at least is only told.
        stack.enter_context(swapped(_PROVISION, with_bound=lambda _, plan: plan))
        for name in ("provision", "sweep"):
            report = {f"report_{name}": lambda *_, **__: None}
            stack.enter_context(swapped(MODULES[name], **report))
        stack.enter_context(swapped(logs_and_metrics, print_metrics=lambda *_: None))
        stack.enter_context(swapped(logs_and_metrics.metrics, add_metric=lambda **_: None))
        # Each change of a level empties the caches of all loggers.
        if level != logging.CRITICAL:
            logs_and_metrics.logger.setLevel("CRITICAL")
        try:
            yield
        finally:
            if level != logging.CRITICAL:
                logs_and_metrics.logger.setLevel(level or "INFO")
