"""A recorded decision, opened: every line says something that was decided or proved."""

from typing import Any

from functions.cli.watch.decision import read_decision
from functions.cli.watch.recent_decisions import summary, without_repeats
from shared.model import labels as keys
from shared.model.dollars_and_counts import dollars
from shared.model.ec2.instance_types import CapacityType, OfferingKey
from shared.model.plan import KeptPreferences
from shared.model.resources import Resources
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from shared.provisioning.decisions.record import compressed, decision_document
from tests.builders import CATALOG, GIB, ZONES, needs, node, pod, pods, provisioner, snapshot

KEY = "decisions/test/2026-01-01/p1.json.gz"


def opened(
    taken: ClusterSnapshot, settings: PackingSettings | None = None, **document: Any
) -> dict[str, Any]:
    settings = settings or PackingSettings()
    plan = document.pop("plan", None) or decide(taken, settings)
    written = decision_document("p1", taken, plan, settings, document.pop("why", None))
    return read_decision(KEY, compressed(written))


def test_a_decision_for_waiting_pods_says_what_was_bought_and_how_good_that_is() -> None:
    read = opened(snapshot(*pods(5)))
    assert read["cause"] == "5 pods wait for capacity"
    assert (read["id"], read["key"], read["pods"]) == ("p1", KEY, 5)
    assert 0 < read["bound"] <= read["cost"]
    [bought] = read["nodes"]
    assert bought["owner"] == "default"
    assert bought["shares"][0]["count"] == bought["pods"]
    assert bought["options"] == sorted(bought["options"], key=lambda option: option[3])
    assert read["why_not_cheaper"] == [
        "It is proved to be the cheapest: no plan that places these pods costs less."
    ]
    assert read["settings"] == []


def test_a_plan_above_its_bound_says_how_much_could_be_saved_at_most() -> None:
    taken = snapshot(pod())
    plan = decide(taken)
    plan = replace(plan, cost_micros_per_hour=2 * plan.cost_micros_per_hour)
    [line] = opened(taken, plan=plan)["why_not_cheaper"]
    assert line.startswith("No plan that places these pods costs less than $")
    assert line.endswith("(100.00 %) could be saved.")


def test_a_plan_beside_nodes_with_room_says_that_nothing_is_proved() -> None:
    taken = snapshot(pod(cpu=100), nodes=(node("n1"),))
    read = opened(taken, plan=decide(snapshot(pod(cpu=100))))
    assert read["why_not_cheaper"] == [
        "Nothing is proved: nodes that are there may have room for these pods."
    ]


def test_a_plan_with_room_for_pods_to_come_says_what_it_would_cost_without() -> None:
    full = tuple(node(f"n{number}", allocatable=Resources.of(pods=1)) for number in range(10))
    taken = snapshot(*pods(3, cpu=1500, memory=2 * GIB), nodes=full)
    without = decide(taken, PackingSettings(leftover_value_percent=0, growth_percent=0))
    assert (
        "Room left over counts 90 % (leftover_value_percent), for the pods to come: without it "
        f"{dollars(without.cost_micros_per_hour)}/h."
    ) in opened(taken)["why_not_cheaper"]


def test_nodes_that_are_alike_are_one_row_with_their_count() -> None:
    apart = pods(3, host_ports=(("0.0.0.0", "TCP", 80),))
    [row] = opened(snapshot(*apart))["nodes"]
    assert (row["count"], row["pods"]) == (3, 1)


def test_options_are_counted_by_provisioner() -> None:
    read = opened(snapshot(pod()))
    [owner] = read["looked_at"]["owners"]
    assert owner["name"] == "default"
    assert owner["zones"] == list(ZONES)
    assert 0 < owner["offerings"] < read["looked_at"]["offerings"]
    assert read["looked_at"]["types"] == len(CATALOG)


def test_offerings_that_ec2_was_out_of_say_what_they_would_have_saved() -> None:
    cheapest = frozenset(
        OfferingKey(instance_type=kind.name, zone=way.zone, capacity_type=CapacityType.ON_DEMAND)
        for kind in CATALOG
        for way in kind.offerings
        if kind.name == CATALOG[0].name
    )
    read = opened(snapshot(pod(cpu=100), unavailable=cheapest))
    lines = [line for line in read["why_not_cheaper"] if line.startswith("EC2 was out of")]
    assert len(lines) == 1
    assert read["looked_at"]["unavailable"] == len(cheapest)


def test_a_setting_says_what_it_costs() -> None:
    read = opened(snapshot(*pods(4)), PackingSettings(node_fee_micros_per_hour=5))
    assert read["settings"] == ["node_fee_micros_per_hour=5"]
    assert any("Without the setting node_fee" in line for line in read["why_not_cheaper"])


def test_a_decision_without_nodes_says_so() -> None:
    taken = snapshot(pod(cpu=100), nodes=(node("n1"),))
    read = opened(taken)
    assert read["placed"] == [{"node": "n1", "count": 1}]
    assert read["why_not_cheaper"] == ["It plans no node: what waits fits on nodes that are there."]


def test_pods_without_a_place_are_grouped_by_reason_and_found_by_uid() -> None:
    read = opened(snapshot(pod("a", cpu=10**9), pod("b", cpu=10**9)))
    [left] = read["unplaced"]
    assert (left["count"], left["names"]) == (2, ["default/a", "default/b"])
    assert read["refused"]["uid-a"].startswith("fits nothing: ")


def test_a_change_of_nodes_says_its_cause_and_what_is_removed() -> None:
    why = {"cause": "consolidation", "method": "delete", "remove": ["n1"], "why": "saves $0.1/h"}
    read = opened(snapshot(pod()), why=why)
    assert (read["cause"], read["remove"]) == ("consolidation: saves $0.1/h", ["n1"])
    assert opened(snapshot(pod()), why={"cause": "drift", "remove": ["n1"]})["cause"] == "drift"


def test_a_cheaper_provisioner_of_the_same_weight_and_kept_preferences_are_told() -> None:
    dear = max(CATALOG, key=lambda kind: kind.offerings[0].price_micros_per_hour).name
    owners = (
        provisioner("a", also=needs(keys.INSTANCE_TYPE, "In", dear)),
        provisioner("b"),
    )
    taken = snapshot(pod(), provisioners=owners)
    plan = replace(decide(taken), preferences=KeptPreferences(stated=2, kept=1))
    lines = opened(taken, plan=plan)["why_not_cheaper"]
    assert any(line.startswith("Provisioner a: its nodes cost $") for line in lines)
    assert "It keeps 1 of 2 preferences of pods." in lines


def test_the_summary_has_counts_in_place_of_details() -> None:
    read = opened(snapshot(*pods(5), pod("huge", cpu=10**9)))
    short = summary({**read, "outcome": None})
    assert short["nodes"] == [[1, read["nodes"][0]["options"][0][0], "on-demand"]]
    assert (short["placed"], short["unplaced"]) == (0, 1)
    assert "looked_at" not in short


def test_decisions_that_only_repeat_the_one_before_are_not_listed() -> None:
    bought = {"id": "p1", "nodes": [1], "placed": [], "remove": [], "refused": {}}
    refused = {"id": "p2", "nodes": [], "placed": [], "remove": [], "refused": {"a": "too large"}}
    again = {**refused, "id": "p3"}
    nothing = {**bought, "id": "p4", "nodes": []}
    listed = without_repeats([nothing, again, refused, bought])
    assert [decision["id"] for decision in listed] == ["p4", "p2", "p1"]
    assert without_repeats([]) == []
