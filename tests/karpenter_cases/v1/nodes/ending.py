"""A node of a NodePool that goes, and the steps of its drain."""

from collections.abc import Mapping
from typing import Any

from shared.nodes.leave.termination import Termination
from shared.ports import TimerKind
from tests.karpenter_cases.v1.worlds import named_pool, stand, world
from tests.unit.worlds import World


def standing(*more: Any, spec: Mapping[str, Any] | None = None, **changes: Any) -> World:
    """Return a world with one initialized node of the NodePool and these values."""
    there = world(named_pool(spec=spec))
    there.cluster.add(*more)
    stand(there, **changes)
    return there


def going(*more: Any, spec: Mapping[str, Any] | None = None, **changes: Any) -> World:
    """The same, its node deleted by its user."""
    there = standing(*more, spec=spec, **changes)
    there.cluster.delete_node(there.cluster.node_values["n1"])
    Termination(there.ports, None).begin("n1")
    return there


def drain(there: World, state: Any = None) -> dict[str, Any]:
    """Take a step of the drain, the first if no state is given."""
    payload = state or there.outbox.timers_of(TimerKind.TERMINATION)[0].payload
    return Termination(there.ports, None).step(payload)


def evicted(there: World) -> list[str]:
    return there.cluster.called("evict")
