"""The summary of a played scenario: for people, and the same as JSON."""

import gzip
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any

from infra.local.aws.clients import instances_of
from infra.local.demo.play import StepResult
from infra.local.demo.prices import price_of
from infra.local.demo.timeline import Timeline
from infra.local.demo.world import CLUSTER, World
from infra.local.harm import read_harm, told
from shared.instance_types.catalog import embedded_catalog
from shared.instance_types.summary import summarize
from shared.model.dollars_and_counts import MICROS

_PROVISION = "dovetail-provision"
_REPORTED = "provisioned"
STAGES = ("seen", "event", "batch", "plan", "launch", "node", "bound", "running")


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A point of wall time and of the observer's clock: ties the two together."""

    wall: datetime
    observed: float

    def seconds_of(self, when: datetime) -> float:
        """Return a wall time as seconds of the observer's clock."""
        return self.observed + (when - self.wall).total_seconds()


def build_report(
    scenario: str, results: Sequence[StepResult], world: World, timeline: Timeline, moment: Moment
) -> dict[str, Any]:
    plans = _plans(world)
    nodes = [_node(our_node, timeline) for our_node in timeline.our_nodes()]
    early = timeline.bound_early()
    bought = [node for node in nodes if node["price_micros_per_hour"]]
    # The bound is of plans for waiting pods; a change of nodes is judged by what it saves.
    waited = [plan for plan in plans if "change" not in plan]
    answered, cost, bound = _judged(waited, _reports(world))
    return {
        "version": 1,
        "scenario": scenario,
        "passed": all(not result.failures for result in results),
        "speed": world.options.speed,
        "steps": [
            {
                "title": result.title,
                "seconds": round(result.seconds, 1),
                "failures": [{"expectation": name, "why": why} for name, why in result.failures],
                "nodes": result.nodes,
                "dollars_per_hour": _dollars(result.price_micros_per_hour),
            }
            for result in results
        ],
        "pods": len({pod.name for pod in timeline.pods.values() if pod.running is not None}),
        "bound_early": len(early),
        "refused": sum(pod_track.refused for pod_track in early),
        "nodes": nodes,
        "instance_types": dict(sorted(Counter(node["instance_type"] for node in nodes).items())),
        "capacity_types": dict(sorted(Counter(node["capacity_type"] for node in nodes).items())),
        "dollars_per_hour_bought": _dollars(sum(n["price_micros_per_hour"] for n in bought)),
        "plans": answered,
        "changes": len(plans) - len(waited),
        "plan_dollars_per_hour": _dollars(cost),
        "lower_bound_dollars_per_hour": _dollars(bound),
        "gap_percent": round(100 * (cost - bound) / bound, 2) if bound else 0.0,
        "seconds_by_stage": _stages(world, timeline, plans, moment),
        "survived": told(read_harm(world.control)),
        "prices": str(summarize(embedded_catalog())),
    }


def _plans(world: World) -> list[dict[str, Any]]:
    """Return the recorded decisions that bought something, oldest first."""
    s3 = world.client("s3")
    bucket = next(
        entry["Name"]
        for entry in s3.list_buckets()["Buckets"]
        if "dovetail" in entry["Name"].lower()
    )
    listed = s3.list_objects_v2(Bucket=bucket, Prefix=f"decisions/{CLUSTER}/").get("Contents", [])
    found = []
    for row in sorted(listed, key=lambda entry: entry["Key"]):
        if row["Key"].endswith(".json.gz"):
            body = s3.get_object(Bucket=bucket, Key=row["Key"])["Body"].read()
            document = json.loads(gzip.decompress(body))
            document["written_at"] = row["LastModified"]
            document["id"] = row["Key"].rpartition("/")[2].removesuffix(".json.gz")
            if document["plan"]["nodes"]:
                found.append(document)
    return found


def _judged(
    waited: Sequence[Mapping[str, Any]], reports: Sequence[Mapping[str, Any]]
) -> tuple[int, int, int]:
    """Return how many plans for waiting pods provision answered for, their cost and their bound.

    A function that was killed reported nothing: what it had planned was planned again.
    """
    told_plans = {plan for report in reports for plan in report["plans"]}
    answered = [plan for plan in waited if plan["id"] in told_plans]
    cost = sum(plan["plan"]["cost_micros_per_hour"] for plan in answered)
    return len(answered), cost, sum(report["lower_bound_micros_per_hour"] for report in reports)


def _reports(world: World) -> list[dict[str, Any]]:
    """Return what provision reported, as it logged it."""
    logs = world.client("logs")
    group = next(
        entry["logGroupName"]
        for entry in logs.describe_log_groups()["logGroups"]
        if entry["logGroupName"].endswith(_PROVISION)
    )
    found = []
    for page in logs.get_paginator("filter_log_events").paginate(logGroupName=group):
        for event in page["events"]:
            line = json.loads(event["message"]) if _REPORTED in event["message"] else {}
            if line.get("message") == _REPORTED:
                found.append(line["report"])
    return found


def _node(track: Any, timeline: Timeline) -> Any:
    instance_type = track.labels.get("node.kubernetes.io/instance-type", "")
    zone = track.labels.get("topology.kubernetes.io/zone", "")
    capacity_type = track.labels.get("karpenter.sh/capacity-type", "")
    return {
        "name": track.name,
        "instance_id": track.instance_id,
        "instance_type": timeline.instance_types.get(track.instance_id, instance_type),
        "zone": zone,
        "capacity_type": capacity_type,
        "price_micros_per_hour": price_of(track.labels),
        "initialized_after": _after(track.created, track.initialized),
        "most_pods": track.most_pods,
        "gone": track.gone is not None,
    }


def _stages(
    world: World, timeline: Timeline, plans: list[dict[str, Any]], moment: Moment
) -> dict[str, float | None]:
    """Return seconds from the first pod seen waiting to each stage of the first burst."""
    waiting = [p.unschedulable for p in timeline.pods.values() if p.unschedulable is not None]
    if not waiting or not plans:
        return dict.fromkeys(STAGES)
    start = min(waiting)
    invocations = world.control("functions/invocations", function=_PROVISION)
    begun = [
        moment.seconds_of(datetime.fromisoformat(invocation["at"]))
        for invocation in invocations["invocations"]
    ]
    first = plans[0]
    gathered = moment.seconds_of(datetime.fromisoformat(first["snapshot"]["taken_at"]))
    instances = instances_of(world.client("ec2"))
    launched = [moment.seconds_of(instance["LaunchTime"]) for instance in instances]
    nodes = timeline.our_nodes()
    moments = {
        "seen": start,
        "event": min(begun, default=None),
        "batch": gathered,
        "plan": moment.seconds_of(first["written_at"]),
        "launch": min(launched, default=None),
        "node": min((n.created for n in nodes if n.created is not None), default=None),
        "bound": _median(p.bound for p in timeline.pods.values() if p.bound is not None),
        "running": _median(p.running for p in timeline.pods.values() if p.running is not None),
    }
    return _in_order({k: None if v is None else v - start for k, v in moments.items()})


def _in_order(moments: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return rounded seconds, none before the one it follows: S3 and EC2 tell whole seconds."""
    found: dict[str, float | None] = {}
    latest = 0.0
    for name, when in moments.items():
        latest = latest if when is None else max(latest, when)
        found[name] = None if when is None else round(latest, 1)
    return found


def _median(values: Any) -> float | None:
    listed = list(values)
    return median(listed) if listed else None


def _after(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else round(end - start, 1)


def _dollars(micros: int) -> float:
    return round(micros / MICROS, 4)
