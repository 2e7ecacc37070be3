"""Changes of instances that AWS has scheduled, and recommendations to leave them, per owner."""

from datetime import timedelta
from typing import Any

import pytest

from shared.disruption.evaluation_due import needs_evaluation
from shared.model import labels as keys
from shared.model.errors import NotFoundError
from shared.model.messages.notices import Notice, NoticeKind
from shared.model.policy import Trigger
from shared.model.provisioner import Provisioner
from shared.model.scheduled_changes import ScheduledChange, scheduled_change
from shared.nodes.leave.interruption import Interruption
from shared.ports import TimerKind
from tests.builders import NOW, instance, node_of, pod, provisioner
from tests.karpenter_cases.v1.worlds import named_pool, stand, world
from tests.unit.worlds import NAME, World, failing, instead

CODE = "AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED"
DAYS = timedelta(days=19)
HOUR = timedelta(hours=1)
OFF = {Trigger.SCHEDULED_CHANGE: False}


def owned(**more: Any) -> World:
    there = World(
        provisioner(**more), node_of("n1", "m5.2xlarge"), pod("a", node_name="n1", cpu=1000)
    )
    there.cloud.add(instance("i-n1"))
    there.advance(HOUR)
    return there


def pooled(kind: str = "", says: str = "") -> World:
    raw = named_pool(disruption={"consolidateAfter": "Never"})
    raw["metadata"]["annotations"] = {kind: says} if kind else {}
    there = world(raw)
    stand(there)
    there.cluster.add(pod("a", node_name="n1", cpu=1000))
    there.advance(HOUR)
    return there


def announce(there: World, ahead: timedelta | None, *, over: bool = False) -> str:
    at = None if ahead is None else there.clock.now() + ahead
    notice = Notice(
        kind=NoticeKind.SCHEDULED_CHANGE,
        instance_ids=("i-n1",),
        change=ScheduledChange(code=CODE, starts_at=at),
        ended=frozenset({"i-n1"} if over else ()),
    )
    return Interruption(there.ports).run(notice, "i-n1").action


@pytest.mark.parametrize("make", [owned, pooled])
def test_a_change_that_is_days_ahead_is_met_by_a_replacement_first(make: Any) -> None:
    there = make()
    for _ in range(2):
        assert announce(there, DAYS) == "recorded"
    (text,) = there.messages("ScheduledChange")
    assert text == (
        f"{CODE} is scheduled for 2026-01-20 01:00 UTC: replaced before, and drained at 00:00 UTC "
        "at the latest"
    )
    assert there.node.deletion_at is None
    assert NAME in there.outbox.evaluations
    # In its own time sweep asks for it, too.
    there.outbox.evaluations.clear()
    there.sweep()
    assert NAME in there.outbox.evaluations
    assert there.provision(look=True).nodes_disrupted == 1
    (said,) = there.messages("Disrupted")
    assert said.startswith(f"maintenance: {CODE} is scheduled for 2026-01-20 01:00 UTC; 1 node")
    assert there.cluster.node_values["n1"].deletion_at is None
    assert len(there.outbox.timers_of(TimerKind.REPLACEMENT)) == 1


@pytest.mark.parametrize("ahead", [HOUR, -HOUR, None])
def test_a_change_that_leaves_no_time_drains_the_node_at_once(ahead: timedelta | None) -> None:
    there = pooled()
    assert announce(there, ahead) == "drained"
    assert there.node.annotations[keys.REMOVAL_REASON] == "scheduled-change"
    (text,) = there.messages("Interrupted")
    assert text.startswith(f"scheduled-change ({CODE} is scheduled")
    assert text.endswith("): drained and replaced")


def test_a_node_that_was_not_replaced_in_time_is_drained_an_hour_before() -> None:
    there = owned()
    there.cluster.add(pod("a", node_name="n1", annotations={keys.DO_NOT_EVICT: "true"}))
    announce(there, DAYS)
    there.advance(DAYS - HOUR - timedelta(seconds=1))
    there.provision(look=True)
    there.sweep()
    assert there.node.deletion_at is None
    assert len(there.messages("DisruptionBlocked")) == 1
    there.advance(timedelta(seconds=1))
    there.outbox.evaluations.clear()
    there.sweep()
    assert there.node.annotations[keys.REMOVAL_REASON] == "scheduled-change"
    assert there.outbox.evaluations == [NAME]
    (text,) = there.messages("Interrupted")
    assert CODE in text


def test_one_that_was_written_to_meanwhile_is_drained_a_minute_later() -> None:
    there = owned()
    announce(there, 2 * HOUR)
    there.advance(HOUR)
    there.cluster.fail_next("delete_node", NotFoundError("gone"))
    there.sweep()
    assert there.messages("Interrupted") == []


@pytest.mark.parametrize("ahead", [DAYS, timedelta(0)])
def test_a_node_pool_may_ask_that_it_is_only_recorded(ahead: timedelta) -> None:
    there = pooled("dovetail.dev/scheduled-change", "off")
    assert announce(there, ahead) == "recorded"
    (text,) = there.messages("ScheduledChange")
    assert text.endswith(
        ": only recorded, as dovetail.dev/scheduled-change of nodepool default is off"
    )
    there.advance(DAYS)
    there.sweep()
    assert there.provision(look=True).nodes_disrupted == 0
    assert there.node.deletion_at is None


def test_a_change_that_is_called_off_is_forgotten() -> None:
    there = owned()
    assert announce(there, DAYS, over=True) == "ignored"
    announce(there, DAYS)
    assert scheduled_change(there.node) is not None
    assert announce(there, DAYS, over=True) == "ignored"
    assert keys.CHANGE_SCHEDULED not in there.node.annotations
    assert there.provision(look=True).nodes_disrupted == 0


def test_a_node_that_goes_away_meanwhile_is_not_marked() -> None:
    there = owned()
    instead(there.cluster, "change_node", failing(NotFoundError("gone")))
    assert announce(there, DAYS) == "recorded"


def test_a_mark_that_cannot_be_read_is_none() -> None:
    odd = node_of("a", annotations={keys.CHANGE_SCHEDULED: "tomorrow"})
    assert scheduled_change(odd) is None
    there = World(provisioner(), odd, pod("a", node_name="a"))
    there.advance(HOUR)
    assert there.provision(look=True).nodes_disrupted == 0


# --- recommendations


def recommend(there: World) -> str:
    notice = Notice(kind=NoticeKind.REBALANCE_RECOMMENDATION, instance_ids=("i-n1",))
    Interruption(there.ports).run(notice, "i-n1")
    (text,) = there.messages("RebalanceRecommended")
    return text


@pytest.mark.parametrize(("says", "acts"), [("", False), ("off", False), ("on", True)])
def test_a_node_pool_records_a_recommendation_unless_it_asks_for_more(
    says: str, *, acts: bool
) -> None:
    there = pooled("dovetail.dev/rebalance", says) if says else pooled()
    text = recommend(there)
    assert text.endswith("replaced first if it pays") is acts
    assert (NAME in there.outbox.evaluations) is acts
    if not acts:
        is_said = "off" if says else "not on"
        assert text.endswith(f"dovetail.dev/rebalance of nodepool default is {is_said}")
    assert keys.REBALANCE_RECOMMENDED in there.node.annotations
    assert there.provision(look=True).nodes_disrupted == int(acts)


def test_a_provisioner_acts_on_a_recommendation_unless_it_says_otherwise() -> None:
    for triggers, acts in (({}, True), ({Trigger.REBALANCE: False}, False)):
        there = owned(triggers=triggers)
        assert recommend(there).endswith("if it pays") is acts
        assert bool(there.provision(look=True).nodes_disrupted) is acts


def test_only_what_its_owner_acts_on_asks_for_a_look() -> None:
    marks = {
        Trigger.REBALANCE: keys.REBALANCE_RECOMMENDED,
        Trigger.SCHEDULED_CHANGE: keys.CHANGE_SCHEDULED,
    }
    for trigger, key in marks.items():
        marked = node_of("a", annotations={key: f"{NOW.isoformat()} {CODE}"})

        def wanted(owner: Provisioner, marked: Any = marked) -> bool:
            return needs_evaluation([marked], {"default": owner}, NOW)

        assert wanted(provisioner())
        assert not wanted(provisioner(triggers={trigger: False}))
