"""What a scenario may do to the embedded AWS API: lose, double, refuse, kill."""

import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from infra.local.aws.clients import instances_of
from infra.local.demo.problem import Problem
from infra.local.harm import Harm, read_harm

_ALIVE = ("pending", "running")


class FaultInjection:
    """Makes things go wrong on purpose, and lets the minute's sweep come early."""

    def __init__(
        self,
        control: Callable[..., Any],
        client: Callable[[str], Any],
        api_server: Callable[[], int] | None = None,
    ) -> None:
        """Prepare."""
        self._api_server = api_server
        self._control = control
        self._client = client

    def disturb(self, verbs: Iterable[Mapping[str, Any]]) -> None:
        """Call control verbs, each `{verb: NAME, ...}`."""
        for verb in verbs:
            arguments = dict(verb)
            self._control(str(arguments.pop("verb")), **arguments)

    def interrupt(self, instance_id: str, warning_seconds: float) -> None:
        """Let EC2 warn of an interruption, and take the instance when the time is over."""
        self._control("interrupt", instance_id=instance_id, seconds=warning_seconds)

    def terminate(self, instance_id: str) -> None:
        """Terminate an instance without cordon and drain, as a user of the EC2 console would."""
        self._client("ec2").terminate_instances(InstanceIds=[instance_id])

    def api_server_away(self, seconds: float) -> None:
        """Freeze the API server: calls to it get no answer, as of one that is cut off."""
        if self._api_server is None:
            raise Problem("this API server was not started by the demo and cannot be frozen")
        process, before = self._api_server(), self._machines()
        os.kill(process, signal.SIGSTOP)
        try:
            time.sleep(seconds)
            after = self._machines()
        finally:
            os.kill(process, signal.SIGCONT)
        if after != before:
            changed = ", ".join(sorted(before ^ after))
            raise Problem(f"instances were touched while the API server was away: {changed}")

    def _machines(self) -> frozenset[str]:
        state = {"Name": "instance-state-name", "Values": list(_ALIVE)}
        found = instances_of(self._client("ec2"), Filters=[state])
        return frozenset(instance["InstanceId"] for instance in found)

    def kill_at_launch(self, function: str) -> None:
        """Let the next launch kill the function that is at work, before EC2 answers it."""
        self._control("functions/kill-at-launch", function=self._name_of(function))

    def harm(self) -> Harm:
        """Return what went wrong on purpose so far."""
        return read_harm(self._control)

    def sweep_now(self) -> None:
        pages = self._client("events").get_paginator("list_rules").paginate()
        for page in pages:
            for rule in page["Rules"]:
                if "EveryMinute" in rule["Name"]:
                    self._control("schedules/fire", rule=rule["Name"])
                    return
        raise Problem("there is no rule that fires every minute")

    def _name_of(self, function: str) -> str:
        pages = self._client("lambda").get_paginator("list_functions").paginate()
        for page in pages:
            for entry in page["Functions"]:
                if str(entry["FunctionName"]).endswith(function):
                    return str(entry["FunctionName"])
        raise Problem(f"function {function!r} is not deployed")
