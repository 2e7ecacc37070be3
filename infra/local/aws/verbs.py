"""The control verbs of this part; infra.local.aws.ec2 adds its own."""

from infra.local.aws.access.permissions import MODES
from infra.local.aws.control import Control, ControlError, Json, number, text
from infra.local.aws.execution.function import FunctionNotFoundError
from infra.local.aws.repairs.state_machines import stop_all_executions
from infra.local.aws.service import Services


def register(control: Control, services: Services) -> None:
    """Add `reset`, `status` and the `events/`, `functions/`, `permissions/` verbs."""

    @control.verb("reset")
    def reset(arguments: Json) -> Json:
        """Forget everything: {}."""
        from moto.moto_api._internal.models import moto_api_backend

        del arguments
        stop_all_executions()
        # Nothing that still runs may write into the empty account.
        services.invoker.reset()
        moto_api_backend.reset()
        services.reset()
        control.reset()
        return {}

    @control.verb("status")
    def status(arguments: Json) -> Json:
        """Process ids of the workers: {}."""
        del arguments
        return {"workers": list(services.invoker.processes())}

    @control.verb("throttle")
    def throttle(arguments: Json) -> Json:
        """Refuse calls that roles make to a service: {"service", "seconds"}."""
        service, seconds = text(arguments, "service"), number(arguments, "seconds")
        services.throttle.begin(service, seconds)
        return {"service": service, "seconds": seconds}

    @control.verb("harm")
    def harm(arguments: Json) -> Json:
        """What went wrong on purpose so far: {}."""
        del arguments
        rows = sorted(control.harm.items())
        return {
            "harm": [{"kind": kind, "struck": struck, "count": n} for (kind, struck), n in rows]
        }

    _register_events(control, services)
    _register_functions(control, services)
    _register_permissions(control, services)


def _register_events(control: Control, services: Services) -> None:
    @control.verb("events/drop")
    def drop(arguments: Json) -> Json:
        """Lose the next events of a type: {"detail-type", "count"}."""
        services.bus.drop_next(text(arguments, "detail-type"), int(number(arguments, "count", 1)))
        return {}

    @control.verb("events/duplicate")
    def duplicate(arguments: Json) -> Json:
        """Deliver the next events of a type twice: {"detail-type", "count"}."""
        services.bus.duplicate_next(
            text(arguments, "detail-type"), int(number(arguments, "count", 1))
        )
        return {}

    @control.verb("schedules/fire")
    def fire(arguments: Json) -> Json:
        """Fire a scheduled rule now: {"rule": name}."""
        name = text(arguments, "rule")
        rule = services.scheduler.find(name)
        if rule is None:
            raise ControlError(f"rule {name!r} is not on the default bus: give an existing name")
        return {"id": services.bus.fire(rule)}


def _register_functions(control: Control, services: Services) -> None:
    @control.verb("functions/invocations")
    def invocations(arguments: Json) -> Json:
        """Finished invocations, oldest first: {"function"?: name}."""
        return {"invocations": services.invoker.records(arguments.get("function"))}

    @control.verb("functions/kill")
    def kill(arguments: Json) -> Json:
        """Kill the environments of a function that are at work: {"function": name}."""
        name = text(arguments, "function")
        killed = services.invoker.kill(name)
        if killed:
            control.harmed("function killed", name)
        return {"killed": killed}

    doomed: set[str] = set()

    @control.verb("functions/kill-at-launch")
    def kill_at_launch(arguments: Json) -> Json:
        """Kill a function when EC2 has launched and has not answered yet: {"function": name}.

        Once: at the next launch that finds it at work.
        """
        name = text(arguments, "function")
        try:
            services.invoker.exists(name)
        except FunctionNotFoundError as error:
            raise ControlError(f"function: {error}: send the name of one that exists") from error
        doomed.add(name)
        return {}

    @control.on_launch
    def strike() -> None:
        for name in sorted(doomed):
            if services.invoker.kill(name):
                doomed.discard(name)
                control.harmed("function killed at launch", name)

    control.on_reset(doomed.clear)


def _register_permissions(control: Control, services: Services) -> None:
    @control.verb("permissions/mode")
    def mode(arguments: Json) -> Json:
        """Record what roles lack, or refuse it: {"mode": "record" or "enforce"}."""
        wanted = text(arguments, "mode")
        if wanted not in MODES:
            raise ControlError(f"mode is {wanted!r}: use one of {', '.join(MODES)}")
        services.permissions.mode = wanted
        return {}

    @control.verb("permissions/asked")
    def asked(arguments: Json) -> Json:
        """What roles did, allowed or not: {}."""
        del arguments
        return {"asked": services.permissions.asked()}

    @control.verb("permissions/denied")
    def denied(arguments: Json) -> Json:
        """What roles did without having the permission: {}."""
        del arguments
        return {"denied": services.permissions.denied()}
