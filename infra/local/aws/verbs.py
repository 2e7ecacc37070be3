"""The control verbs of this part; infra.local.aws.ec2 adds its own."""

from typing import Any

from infra.local.aws.access.permissions import MODES
from infra.local.aws.control import Control, ControlError, Json
from infra.local.aws.repairs.machines import stop_all_executions
from infra.local.aws.service import Services


def register(control: Control, services: Services) -> None:
    """Add `reset`, `status`, `metrics` and the `events/`, `functions/`, `permissions/` verbs."""

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
        """Worker processes and waiting asynchronous events: {}."""
        del arguments
        return {
            "workers": list(services.invoker.processes()),
            "deferred": services.deferred.waiting(),
        }

    _register_events(control, services)
    _register_functions(control, services)
    _register_permissions(control, services)


def _register_events(control: Control, services: Services) -> None:
    @control.verb("events/emit")
    def emit(arguments: Json) -> Json:
        """Put an event as an AWS service: {"source", "detail-type", "detail", "resources"?}."""
        event_id = control.emit_event(
            _text(arguments, "source"),
            _text(arguments, "detail-type"),
            arguments.get("detail") or {},
            resources=tuple(arguments.get("resources") or ()),
        )
        return {"id": event_id}

    @control.verb("events/drop")
    def drop(arguments: Json) -> Json:
        """Lose the next events of a type: {"detail-type", "count"}."""
        services.bus.drop_next(_text(arguments, "detail-type"), _count(arguments))
        return {}

    @control.verb("events/duplicate")
    def duplicate(arguments: Json) -> Json:
        """Deliver the next events of a type twice: {"detail-type", "count"}."""
        services.bus.duplicate_next(_text(arguments, "detail-type"), _count(arguments))
        return {}

    @control.verb("events/fail")
    def fail(arguments: Json) -> Json:
        """Let the next deliveries to a target fail: {"target": ARN, "count"}."""
        services.deliveries.fail_next(_text(arguments, "target"), _count(arguments))
        return {}

    @control.verb("schedules/fire")
    def fire(arguments: Json) -> Json:
        """Fire a scheduled rule now: {"rule": name}."""
        name = _text(arguments, "rule")
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
        return {"killed": services.invoker.kill(_text(arguments, "function"))}

    @control.verb("functions/pollers")
    def pollers(arguments: Json) -> Json:
        """Set the pollers for each event source mapping: {"count"}."""
        services.mappings.set_pollers(_count(arguments))
        return {}

    @control.verb("functions/quiet-queue")
    def quiet_queue(arguments: Json) -> Json:
        """Serve queues late after quiet, as AWS may: {"seconds": 0 to 20}."""
        seconds = arguments.get("seconds")
        if not isinstance(seconds, int | float) or not 0 <= seconds <= 20:
            raise ControlError(f"seconds is {seconds!r}: give a number from 0 to 20")
        services.mappings.set_quiet_seconds(float(seconds))
        return {}

    @control.verb("metrics")
    def metrics(arguments: Json) -> Json:
        """Metrics that functions printed: {"namespace"?, "name"?}."""
        rows = services.metrics.summary(
            namespace=arguments.get("namespace"), name=arguments.get("name")
        )
        return {"metrics": rows}


def _register_permissions(control: Control, services: Services) -> None:
    @control.verb("permissions/mode")
    def mode(arguments: Json) -> Json:
        """Record what roles lack, or refuse it: {"mode": "record" or "enforce"}."""
        wanted = _text(arguments, "mode")
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


def _text(arguments: Json, name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str) or not value:
        raise ControlError(f"{name} is {value!r}: give a text")
    return value


def _count(arguments: Json) -> int:
    value: Any = arguments.get("count", 1)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ControlError(f"count is {value!r}: give a number from 0 up")
    return value
