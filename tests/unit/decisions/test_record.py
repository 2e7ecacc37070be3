"""Decisions become the same bytes whatever was written before, and shared parts are made once."""

import dataclasses
import json
from typing import Any

from shared.decisions.record import decision_document, to_plain
from shared.model.plan import Plan
from shared.packing.problem import PackingSettings
from tests.builders import pod, pods, snapshot


def told(value: Any) -> Any:
    """Return a value as plain JSON without remembering anything."""
    if dataclasses.is_dataclass(value):
        return {field.name: told(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return [told(entry) for entry in value] if isinstance(value, tuple) else to_plain(value)


def test_a_decision_is_the_same_bytes_whatever_was_written_before() -> None:
    seen = snapshot(*pods(3), pod("big", cpu=3000))
    first = decision_document("plan", seen, Plan(), PackingSettings())
    decision_document("other", snapshot(*pods(2)), Plan(), PackingSettings())

    assert decision_document("plan", seen, Plan(), PackingSettings()) == first
    recorded = json.loads(first)["snapshot"]
    assert recorded["pending"] == json.loads(json.dumps(told(seen.pending)))
    assert recorded["instance_types"] == json.loads(json.dumps(told(seen.instance_types)))


def test_what_the_pods_of_a_workload_share_is_made_plain_once() -> None:
    one, other = to_plain(pods(2))

    assert one["name"] != other["name"]
    assert one["scheduling"] is other["scheduling"]
    assert to_plain(pod(cpu=501))["scheduling"] is not one["scheduling"]
