"""A recorded decision as the page shows it: what was considered, planned, and why not less."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from functions.cli.plan.packing_settings import (
    changed_settings,
    without_each_setting,
    without_headroom,
)
from functions.cli.plan.plan_text import headroom_line
from functions.cli.plan.recorded_decision import RecordedDecision, load_decision
from functions.cli.watch.view import workload_shares
from shared.model.codec import to_plain
from shared.model.dollars_and_counts import counted, dollars, pods_that_wait
from shared.model.ec2.launches import LaunchOption, PlannedNode
from shared.model.kubernetes.pods import Pod
from shared.model.plan import Plan
from shared.model.resources import CPU, MEMORY
from shared.model.values import replace
from shared.planning.cheaper_provisioners import cheaper_provisioners
from shared.planning.initial_state import pods_to_place
from shared.planning.lower_bound import with_bound
from shared.planning.offerings.picks import label_choices
from shared.planning.rules.provisioner_offerings import provisioner_offerings, usable_in_order

_NAMED: Final = 5


def read_decision(key: str, content: bytes, base: bytes = b"") -> dict[str, Any]:
    """Return a decision as plain JSON; its proof and its comparisons are computed here.

    Args:
        key: Where it is kept: decisions/CLUSTER/DAY/PLAN.json.gz.
        content: As it was recorded.
        base: The base that it is a change of, if it is one.

    Raises:
        InvalidManifestError: If it is not a decision.
    """
    decision = load_decision(content, lambda _: base)
    plan = with_bound(decision.snapshot, decision.plan)
    pods = {pod.uid: pod for pod in (*decision.snapshot.pending, *decision.snapshot.bound)}
    placed = sum(len(node.pods) for node in plan.nodes)
    return {
        "id": decision.plan_id,
        "key": key,
        "at": decision.snapshot.taken_at.isoformat(),
        "cause": _cause(decision),
        "remove": list(decision.change.get("remove", ())),
        "cost": plan.cost_micros_per_hour,
        "bound": plan.lower_bound_micros_per_hour,
        "gap_percent": round(plan.gap_percent, 2),
        "bound_is_close": plan.bound_is_close,
        "pods": placed,
        "placed": [
            {"node": placement.node, "count": len(placement.pods)} for placement in plan.placements
        ],
        "nodes": [_node(node, count, pods) for node, count in _alike(plan)],
        "unplaced": _unplaced(plan),
        "looked_at": _looked_at(decision),
        "why_not_cheaper": list(_why_not_cheaper(decision, plan)),
        "settings": list(changed_settings(decision.settings)),
        "remark": plan.remark,
        "refused": {
            left.pod.uid: ("has no place yet: " if left.later else "fits nothing: ")
            + "; ".join(left.reasons)
            for left in plan.unschedulable
        },
    }


def _cause(decision: RecordedDecision) -> str:
    change = decision.change
    if change:
        reason = f": {change['why']}" if change.get("why") else ""
        return f"{change.get('cause', 'a change of nodes')}{reason}"
    waiting = len(pods_to_place(decision.snapshot))
    return f"{pods_that_wait(waiting)} for capacity"


def _alike(plan: Plan) -> list[tuple[PlannedNode, int]]:
    """Return each group of equal planned nodes once, with their count; most first."""
    first: dict[object, PlannedNode] = {}
    counts: Counter[object] = Counter()
    for node in plan.nodes:
        key = (node.provisioner, node.options, node.requests, node.daemon_requests, len(node.pods))
        first.setdefault(key, node)
        counts[key] += 1
    return [(first[key], count) for key, count in counts.most_common()]


def _node(node: PlannedNode, count: int, pods: Mapping[str, Pod]) -> dict[str, Any]:
    used = node.requests + node.daemon_requests
    allocatable = node.options[0].allocatable
    here = [pods[ref.uid] for ref in node.pods if ref.uid in pods]
    return {
        "count": count,
        "owner": node.provisioner,
        "pods": len(node.pods),
        "cpu_percent": _percent(used[CPU], allocatable[CPU]),
        "memory_percent": _percent(used[MEMORY], allocatable[MEMORY]),
        "shares": [to_plain(share) for share in workload_shares(here)],
        "options": [_option(option) for option in node.options],
        "fallback": [_option(option) for option in node.fallback],
    }


def _option(option: LaunchOption) -> list[Any]:
    key = option.offering
    return [key.instance_type, key.zone, key.capacity_type.value, option.price_micros_per_hour]


def _percent(used: int, allocatable: int) -> int:
    return round(100 * used / allocatable) if allocatable else 0


def _unplaced(plan: Plan) -> list[dict[str, Any]]:
    by_reason: dict[str, list[str]] = {}
    for left in plan.unschedulable:
        by_reason.setdefault("; ".join(left.reasons), []).append(left.pod.key)
    return [
        {"reason": reason, "count": len(names), "names": names[:_NAMED]}
        for reason, names in by_reason.items()
    ]


def _looked_at(decision: RecordedDecision) -> dict[str, Any]:
    """Return how many types and offerings were considered, in all and by Provisioner."""
    snapshot = decision.snapshot
    sites = {site.provisioner: site for site in snapshot.sites}
    owners = []
    for owner in [found for found in usable_in_order(snapshot.provisioners) if found.name in sites]:
        site = sites[owner.name]
        sold = provisioner_offerings(
            owner,
            site,
            snapshot.instance_types,
            snapshot.daemonsets,
            unavailable=snapshot.unavailable,
            picks=label_choices(owner, ()),
        )
        owners.append(
            {
                "name": owner.name,
                "types": len({offer.instance_type.name for offer in sold}),
                "offerings": sum(len(offer.offerings) for offer in sold),
                "zones": list(site.zones),
                "reason": site.reason or site.refusal,
            }
        )
    return {
        "types": len(snapshot.instance_types),
        "offerings": sum(len(kind.offerings) for kind in snapshot.instance_types),
        "unavailable": len(snapshot.unavailable),
        "owners": owners,
    }


def _why_not_cheaper(decision: RecordedDecision, plan: Plan) -> Iterator[str]:
    """Yield what keeps the plan from costing less, each planned without it to say how much."""
    cost, bound = plan.cost_micros_per_hour, plan.lower_bound_micros_per_hour
    if not cost:
        yield "It plans no node: what waits fits on nodes that are there."
        return
    if not bound:
        yield "Nothing is proved: nodes that are there may have room for these pods."
    elif cost == bound:
        yield "It is proved to be the cheapest: no plan that places these pods costs less."
    else:
        yield (
            f"No plan that places these pods costs less than {dollars(bound)}/h: "
            f"at most {dollars(cost - bound)}/h ({plan.gap_percent:.2f} %) could be saved."
        )
    if decision.snapshot.unavailable:
        full = replace(decision.snapshot, unavailable=frozenset())
        instead = replace(decision, snapshot=full).replay()
        count = counted(len(decision.snapshot.unavailable), "offering")
        yield _against(f"EC2 was out of {count} lately; with them", instead, cost)
    headroom_free_settings = without_headroom(
        decision.settings, len(pods_to_place(decision.snapshot))
    )
    if headroom_free_settings is not None and not decision.change:
        headroom = headroom_line(
            decision.settings, decision.replay(), decision.replay(headroom_free_settings)
        )
        yield from (f"{headroom[0].upper()}{headroom[1:]}.",) if headroom else ()
    for named, settings in without_each_setting(decision.settings):
        yield _against(f"Without the setting {named}", decision.replay(settings), cost)
    for found in cheaper_provisioners(decision.snapshot, plan, decision.settings):
        yield f"{found.used_kind} {found.used}: {found.text}."
    if plan.preferences.kept:
        kept, stated = plan.preferences.kept, plan.preferences.stated
        yield f"It keeps {kept:,} of {stated:,} preferences of pods."


def _against(when: str, instead: Plan, cost: int) -> str:
    less = cost - instead.cost_micros_per_hour
    word = "less" if less > 0 else "more"
    difference = f"{dollars(abs(less))}/h {word}" if less else "the same"
    return f"{when} the plan would cost {dollars(instead.cost_micros_per_hour)}/h, {difference}."
