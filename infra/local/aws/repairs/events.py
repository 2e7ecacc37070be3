"""EventBridge: our bus in front of moto's rules, and CloudFormation's view of buses."""

import json
from typing import Any

from infra.local.aws.backends import moto_name
from infra.local.aws.events.bus import EventBus, RequestRefusedError
from infra.local.aws.repairs.registry import (
    add,
    as_classmethod,
    repair,
    replace,
    stock_classmethod,
)

_bus: list[EventBus] = []


def use_bus(bus: EventBus) -> None:
    """Name the bus that PutEvents and replays go to."""
    _bus[:] = [bus]


@repair("events-delivery")
def deliver_through_our_bus() -> None:
    """PutEvents and replays: limits, every target on its own, functions and machines too."""
    from moto.events.exceptions import ValidationException

    rule = moto_name("events.models", "Rule")

    def put_events(self: Any, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        try:
            return _bus[0].put(self, events)
        except RequestRefusedError as error:
            raise ValidationException(str(error)) from error

    def send_to_targets(self: Any, original_event: Any, transform_input: bool = True) -> None:  # noqa: FBT001, FBT002 - moto's signature
        del transform_input
        _bus[0].match_and_send(self, original_event)

    add(rule, "send_to_targets_by_moto", rule.send_to_targets)
    replace(rule, "send_to_targets", send_to_targets)
    replace(moto_name("events.models", "EventsBackend"), "put_events", put_events)


@repair("events-cloudformation")
def repair_templates() -> None:
    """Templates may refer to a bus, and write patterns of archives as objects."""
    archive = moto_name("events.models", "Archive")
    moto_bus = moto_name("events.models", "EventBus")

    def physical_resource_id(self: Any) -> str:
        return str(self.name)

    stock = stock_classmethod(archive, "create_from_cloudformation_json")

    def create_archive(
        cls: type, name: str, template: Any, account: str, region: str, **rest: Any
    ) -> Any:
        properties = template["Properties"]
        if isinstance(properties.get("EventPattern"), dict):
            properties["EventPattern"] = json.dumps(properties["EventPattern"])
        return stock(cls, name, template, account, region, **rest)

    add(moto_bus, "physical_resource_id", property(physical_resource_id))
    add(archive, "physical_resource_id", property(physical_resource_id))
    replace(archive, "create_from_cloudformation_json", as_classmethod(create_archive))
