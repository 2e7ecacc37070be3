"""Decisions become the same bytes whatever was written before."""

from shared.model.plan import Plan
from shared.packing.problem import PackingSettings
from shared.provisioning.decisions.record import decision_document
from tests.builders import pod, pods, snapshot


def test_a_decision_is_the_same_bytes_whatever_was_written_before() -> None:
    seen = snapshot(*pods(3), pod("big", cpu=3000))
    first = decision_document("plan", seen, Plan(), PackingSettings())
    decision_document("other", snapshot(*pods(2)), Plan(), PackingSettings())

    assert decision_document("plan", seen, Plan(), PackingSettings()) == first
