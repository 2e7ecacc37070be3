"""The execution environments of all functions, at most `workers` of them busy at once.

On AWS the account's limit is far above what one machine can run, so an invocation waits here
for its turn instead of being throttled; only reserved concurrency throttles.
"""

import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from infra.local.aws.execution.environment import ExecutionEnvironment, Invocation, Outcome
from infra.local.aws.execution.function import FunctionSpec
from infra.local.aws.execution.template import Template

IDLE_PER_WORKER = 3
"""Idle environments kept per allowed busy one, so that ten functions do not evict each other."""

Starter = Callable[[FunctionSpec], tuple[Path, Mapping[str, str], Callable[[str], None]]]
"""Prepares a start: code folder, environment variables, where output lines go."""


class EnvironmentPool:
    """Hands out environments, starts missing ones, keeps idle ones warm."""

    def __init__(self, prepare: Starter, *, workers: int) -> None:
        self._prepare = prepare
        self._workers = workers
        self._template = Template()
        self._changed = threading.Condition()
        self._idle: list[ExecutionEnvironment] = []
        self._busy: set[ExecutionEnvironment] = set()
        self._turns = 0
        self._starts = threading.BoundedSemaphore(max(2, os.cpu_count() or 2))

    def run(self, spec: FunctionSpec, invocation: Invocation) -> tuple[Outcome, bool]:
        """Run one invocation; the flag says whether a new environment was started for it."""
        self._await_turn()
        environment, cold, failure = None, False, None
        try:
            environment = self._warm(spec)
            if environment is None:
                environment, cold, failure = self._start(spec)
            return failure or environment.invoke(invocation), cold
        finally:
            self._give_back(environment)

    def processes(self) -> tuple[int, ...]:
        """Process ids of all living workers."""
        with self._changed:
            return tuple(sorted(env.pid for env in [*self._idle, *self._busy] if env.is_alive))

    def kill_busy(self, name: str) -> int:
        """Kill the environments of a function that are at work; return how many."""
        with self._changed:
            doomed = [env for env in self._busy if env.spec.name == name]
        for environment in doomed:
            environment.kill()
        return len(doomed)

    def kill_all(self) -> None:
        with self._changed:
            doomed = [*self._idle, *self._busy]
            self._idle.clear()
        for environment in doomed:
            environment.kill()

    def stop(self) -> None:
        self.kill_all()
        self._template.stop()

    def _await_turn(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._turns < self._workers)
            self._turns += 1

    def _warm(self, spec: FunctionSpec) -> ExecutionEnvironment | None:
        stale: list[ExecutionEnvironment] = []
        found: ExecutionEnvironment | None = None
        with self._changed:
            for environment in reversed(self._idle):
                if environment.spec.arn != spec.arn:
                    continue
                if environment.spec.key != spec.key or not environment.is_alive:
                    stale.append(environment)
                elif found is None:
                    found = environment
            taken = {*stale, found}
            self._idle = [env for env in self._idle if env not in taken]
            if found is not None:
                self._busy.add(found)
        for environment in stale:
            environment.kill()
        return found

    def _start(self, spec: FunctionSpec) -> tuple[ExecutionEnvironment, bool, Outcome | None]:
        """Start an environment, unless one is free by the time that it is its turn."""
        with self._starts:
            freed = self._warm(spec)
            if freed is not None:
                return freed, False, None
            folder, variables, on_line = self._prepare(spec)
            environment = ExecutionEnvironment(
                spec, self._template, folder=folder, variables=variables, on_line=on_line
            )
            with self._changed:
                self._busy.add(environment)
            failure = environment.wait_ready()
        if failure is not None:
            environment.kill()
        return environment, True, failure

    def _give_back(self, environment: ExecutionEnvironment | None) -> None:
        doomed: list[ExecutionEnvironment] = []
        with self._changed:
            self._turns -= 1
            if environment is not None:
                self._busy.discard(environment)
                if environment.is_usable:
                    self._idle.append(environment)
                else:
                    doomed.append(environment)
            surplus = len(self._idle) - self._workers * IDLE_PER_WORKER
            if surplus > 0:
                doomed += self._idle[:surplus]
                del self._idle[:surplus]
            self._changed.notify()
        for old in doomed:
            old.kill()
