"""A plan as the JSON document that other programs read: docs/schemas/plan-output.json."""

from collections.abc import Iterable
from typing import Any, Final

from shared.model.ec2.launches import LaunchOption, PlannedNode, PodRef
from shared.model.plan import Plan

VERSION: Final = 1


def plan_document(plan: Plan, cost_without_jobs: int, elapsed_ms: float) -> dict[str, Any]:
    """Return the document of a plan.

    `requests` of a node is what its pods request together, `allocatable` what an instance of its
    first option has for pods and daemons, both as Kubernetes quantities.

    Args:
        cost_without_jobs: Cost of the nodes for what runs always, in micro-dollars per hour.
        elapsed_ms: How long deciding took, in milliseconds.
    """
    return {
        "version": VERSION,
        "nodes": [_node(node) for node in plan.nodes],
        "existing": [
            {"node": placement.node, "pods": _pods(placement.pods)} for placement in plan.placements
        ],
        "unschedulable": [
            {
                "namespace": pod_left.pod.namespace,
                "name": pod_left.pod.name,
                "reasons": list(pod_left.reasons),
            }
            for pod_left in plan.unschedulable
        ],
        "cost_micros_per_hour": plan.cost_micros_per_hour,
        "cost_without_jobs_micros_per_hour": cost_without_jobs,
        "lower_bound_micros_per_hour": plan.lower_bound_micros_per_hour,
        "bound_is_close": plan.bound_is_close,
        "preferences": {
            "stated": plan.preferences.stated,
            "kept": plan.preferences.kept,
            "rest_micros_per_hour": plan.preferences.rest_micros_per_hour,
        },
        "elapsed_ms": round(elapsed_ms, 3),
    }


def _node(node: PlannedNode) -> dict[str, Any]:
    return {
        "provisioner": node.provisioner,
        "options": [_option(option) for option in node.options],
        "pods": _pods(node.pods),
        "requests": node.requests.to_quantities(),
        "allocatable": node.options[0].allocatable.to_quantities(),
        "price_micros_per_hour": node.price_micros_per_hour,
    }


def _option(option: LaunchOption) -> dict[str, Any]:
    return {
        "instance_type": option.offering.instance_type,
        "zone": option.offering.zone,
        "capacity_type": option.offering.capacity_type.value,
        "price_micros_per_hour": option.price_micros_per_hour,
    }


def _pods(pods: Iterable[PodRef]) -> list[dict[str, str]]:
    return [{"namespace": pod.namespace, "name": pod.name} for pod in pods]
