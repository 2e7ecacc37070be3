"""What the ledger costs for one node, from its launch to its end."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from shared.aws.ledger.ledger import DynamoLedger
from shared.model.timer_state import DONE
from shared.model.values import replace
from shared.nodes.join.registration import Registration
from shared.nodes.leave.emptiness_timer import Emptiness
from shared.nodes.leave.expiration_timer import Expiration
from shared.nodes.leave.termination import Termination
from shared.nodes.timers.node_timer import BaseTimer
from shared.ports import TimerKind
from tests.builders import pods, provisioner
from tests.scale.table import CountedTable
from tests.unit.worlds import SECOND, World

_EMPTY_FOR: Final = timedelta(seconds=30)
_EXPIRES: Final = timedelta(days=30)
_LONGEST: Final = 100


def life(nodes: int) -> Mapping[str, float]:
    """Follow so many nodes, each launched for a pod alone, until they are gone.

    A first node has come and gone before: what a cluster writes once is not counted.
    """
    run = _Life()
    run.one()
    run.table.writes.clear()
    run.table.reads.clear()
    for _ in range(nodes):
        run.one()
    table = run.table
    return {
        "WCU of one": table.writes.total() / nodes,
        "RCU of one": table.reads.total() / nodes,
    }


class _Life:
    """One cluster whose ledger is real, and the timers of its nodes."""

    def __init__(self) -> None:
        self.table = CountedTable()
        session: Any = self.table
        owner = provisioner(ttl_after_empty=_EMPTY_FOR, ttl_until_expired=_EXPIRES)
        self._world = World(owner)
        ledger: Any = DynamoLedger(session, table="ledger", clock=self._world.clock)
        self._world.ledger = ledger
        self._world.ports = replace(self._world.ports, ledger=ledger)
        self._timers: dict[tuple[TimerKind, str], tuple[datetime, Mapping[str, Any]]] = {}

    def one(self) -> None:
        """Let a pod wait, its node come and join, the pod go, and the node with its machine."""
        world = self._world
        (waiting,) = pods(1, cpu=1500)
        world.cluster.add(waiting)
        world.provision_until_quiet()
        node = world.node
        world.kubelet_joins(node.name)
        world.bind(node.name)
        self._steps()
        world.cluster.pods.clear()
        Emptiness(world.ports).begin(node.name)
        for _ in range(_LONGEST):
            if not world.cluster.node_values and not world.alive:
                break
            world.advance(5 * SECOND)
            for name, known in world.cluster.node_values.items():
                if known.deletion_at is not None:
                    Termination(world.ports, None).begin(name)
            self._steps()
        assert not world.cluster.node_values
        assert not world.alive

    def _steps(self) -> None:
        """Let each timer that is due take its step."""
        ports = self._world.ports
        timers: Mapping[TimerKind, BaseTimer] = {
            TimerKind.REGISTRATION: Registration(ports),
            TimerKind.EXPIRATION: Expiration(ports),
            TimerKind.EMPTINESS: Emptiness(ports),
            TimerKind.TERMINATION: Termination(ports, None),
        }
        now = self._world.clock.now()
        for kind, name, payload in self._world.outbox.timers:
            first = now + timedelta(seconds=payload["wait_seconds"])
            due, state = self._timers.setdefault((kind, name), (first, payload))
            if due <= now and state["next"] != DONE:
                after = timers[kind].step(state)
                due = now + timedelta(seconds=after["wait_seconds"])
                self._timers[kind, name] = due, after
