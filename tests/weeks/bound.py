"""What a trace costs at least, whoever serves it."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from infra.local.cluster_simulator.rules.amounts import pod_requests
from shared.model.ec2.instance_types import InstanceType
from tests.weeks.cluster import DAEMONSET
from tests.weeks.traces import Trace

_RESOURCES: Final = ("cpu", "memory", "pods", "nvidia.com/gpu")
_ENOUGH: Final = 1e-9


def least_micros(trace: Trace, types: Sequence[InstanceType]) -> float:
    """Return a lower bound of the price of a trace, in micro-dollars.

    For each moment the linear programme over the types: least price so that resources are at least
    those of the pods that are wanted then. Nodes may be cut into pieces, boot in no time, and pods
    move for nothing. The programme has a row for each resource, so its optimum is the largest value
    of the demand at any vertex of the dual polyhedron, and these are few.
    """
    requests = {
        workload.name: pod_requests({"spec": workload.spec, "metadata": {}})
        for workload in trace.workloads
    }
    used = [name for name in _RESOURCES if any(name in asked for asked in requests.values())]
    prices = _prices_of_resources(types, used)
    total, last, demand = 0.0, 0.0, np.zeros(len(used))
    for moment, wanted in trace.wanted():
        second = min(moment, trace.seconds)
        total += float((prices @ demand).max()) * (second - last) / 3600
        last = second
        demand = np.array([_sum(wanted, requests, name) for name in used], dtype=float)
    return total + float((prices @ demand).max()) * (trace.seconds - last) / 3600


def _sum(
    wanted: Mapping[str, int], requests: Mapping[str, Mapping[str, int]], resource: str
) -> int:
    return sum(count * requests[name].get(resource, 0) for name, count in wanted.items())


def _prices_of_resources(types: Sequence[InstanceType], used: Sequence[str]) -> Any:
    """Return the vertices of the dual: prices of resources at which no type is worth more."""
    agent = pod_requests({"spec": DAEMONSET["spec"]["template"]["spec"], "metadata": {}})
    rows = {
        (
            *(max(kind.allocatable[name] - agent.get(name, 0), 0) for name in used),
            min(way.price_micros_per_hour for way in kind.offerings),
        )
        for kind in types
    }
    useful = [row for row in rows if not any(_is_better(other, row) for other in rows)]
    table = np.array(useful, dtype=float)
    scale = table[:, :-1].max(axis=0)
    room, price = table[:, :-1] / scale, table[:, -1]
    found = [np.zeros(len(used))]
    # At a vertex as many constraints hold with equality as there are resources.
    planes = np.vstack([room, np.eye(len(used))])
    sides = np.concatenate([price, np.zeros(len(used))])
    for chosen in itertools.combinations(range(len(planes)), len(used)):
        part = planes[list(chosen)]
        if abs(np.linalg.det(part)) < _ENOUGH:
            continue
        point = np.linalg.solve(part, sides[list(chosen)])
        if (point >= -_ENOUGH).all() and (room @ point <= price * (1 + _ENOUGH)).all():
            found.append(np.maximum(point, 0))
    return np.array(found) / scale


def _is_better(other: tuple[int, ...], row: tuple[int, ...]) -> bool:
    """Return whether a type has no less of anything, costs no more, and is another."""
    no_less = all(mine >= its for mine, its in zip(other[:-1], row[:-1], strict=True))
    return other != row and no_less and other[-1] <= row[-1]
