"""EventBridge: our bus in front of moto's rules, and CloudFormation's view of buses."""

from typing import Any

from infra.local.aws.backends import moto_name
from infra.local.aws.events.bus import EventBus, RequestRefusedError
from infra.local.aws.events.delivery import target_problem
from infra.local.aws.events.schedules import schedule_problem
from infra.local.aws.moto_patches import add, repair, replace

_bus: list[EventBus] = []


def use_bus(bus: EventBus) -> None:
    """Name the bus that PutEvents goes to."""
    _bus[:] = [bus]


@repair("events-delivery")
def deliver_through_our_bus() -> None:
    """PutEvents: limits, every target on its own, functions too."""
    from moto.events.exceptions import ValidationException

    def put_events(self: Any, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        try:
            return _bus[0].put(self, events)
        except RequestRefusedError as error:
            raise ValidationException(str(error)) from error

    replace(moto_name("events.models", "EventsBackend"), "put_events", put_events)


@repair("events-refusals")
def refuse_what_never_acts_here() -> None:
    """PutRule and PutTargets, also of a stack, refuse what is not emulated."""
    from moto.events.exceptions import ValidationException

    events = moto_name("events.models", "EventsBackend")
    stock_rule, stock_targets = events.put_rule, events.put_targets

    def put_rule(self: Any, name: str, **settings: Any) -> Any:
        if problem := schedule_problem(settings.get("scheduled_expression") or ""):
            raise ValidationException(f"rule {name}: {problem}")
        return stock_rule(self, name, **settings)

    def put_targets(self: Any, name: str, event_bus_arn: Any, targets: Any) -> None:
        for target in targets:
            if problem := target_problem(target):
                raise ValidationException(f"rule {name}: {problem}")
        stock_targets(self, name, event_bus_arn, targets)

    replace(events, "put_rule", put_rule)
    replace(events, "put_targets", put_targets)


@repair("events-cloudformation")
def repair_templates() -> None:
    """Templates may refer to a bus."""
    moto_bus = moto_name("events.models", "EventBus")

    def physical_resource_id(self: Any) -> str:
        return str(self.name)

    add(moto_bus, "physical_resource_id", property(physical_resource_id))
