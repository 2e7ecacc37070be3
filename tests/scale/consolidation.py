"""A large cluster whose nodes are half empty: how fast consolidation takes nodes away.

Looks, steps of replacements, steps of drains and sweeps run as the events and timers call for them,
each from its own time on. Workloads make evicted pods anew, which land on the emptiest open node.
"""

import heapq
import itertools
from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from functions.replacement import handler as replacement
from functions.sweep import handler as sweep
from functions.termination import handler as termination
from shared.kube.api import MERGE_PATCH
from shared.model.messages.message import MessageKind, encode, make_message
from shared.model.timer_state import DONE
from shared.nodes.leave.replacement import REPLACED_ALL, Replacement
from shared.nodes.leave.termination import Termination
from shared.ports import TimerKind
from shared.provisioning.sweep.sweep import Sweep, SweepPolicy
from tests.scale import manifests
from tests.scale.apiserver import large_cluster
from tests.scale.virtual import WAKE_WINDOW, Spent
from tests.scale.world import MEMORY_MIB, LargeCluster

# Of a node of ten pods.
PODS: Final = 5
_ROOM: Final = 11
_LASTS: Final = timedelta(minutes=10)
_MINUTE: Final = timedelta(minutes=1)
_OWNER: Final = "/apis/karpenter.sh/v1alpha5/provisioners/default"


def consolidation(nodes: int) -> Mapping[str, float]:
    """Consolidate a cluster of so many half-empty nodes for ten minutes."""
    with large_cluster(nodes, pods_of_a_node=PODS) as url:
        run = _Consolidation(url, nodes)
        run.play()
        hours = (run.last - run.began) / timedelta(hours=1)
        return {
            "nodes removed": run.removed,
            "seconds a node": 3600 * hours / max(run.removed, 1),
            "longest look, s": run.longest["provision"],
            "longest step of a replacement, s": run.longest["replacement"],
            "longest step of a drain, s": run.longest["termination"],
            "changes at a time": run.most_at_once,
            "changes abandoned": run.abandoned,
            "nodes cordoned and not drained": run.forgotten(),
            "CPU s": run.cpu_seconds,
        }


class _Consolidation:
    """Ten minutes of a cluster.

    Attributes:
        began: When the first look is due.
        last: When the last node was gone.
        removed: Nodes.
        longest: Seconds of the longest invocation, by function.
        most_at_once: Replacements that ran side by side.
        abandoned: Replacements that ended otherwise than with the removal of all their nodes.
    """

    def __init__(self, url: str, nodes: int) -> None:
        self._cluster = cluster = LargeCluster(url, "provision")
        cluster.stands(nodes)
        body = {"spec": {"ttlSecondsAfterEmpty": None, "consolidation": {"enabled": True}}}
        assert cluster.api.send("PATCH", _OWNER, body=body, content_type=MERGE_PATCH).ok
        cluster.outbox.timers.clear()
        self._replacement = Replacement(cluster.of_another_function())
        self._termination = Termination(cluster.of_another_function(), None)
        self._sweep = Sweep(cluster.of_another_function(), SweepPolicy())
        self._pods = [(PODS, manifests.node_name(number)) for number in range(nodes)]
        self._going: set[str] = set()
        self._due: list[tuple[datetime, int, Callable[[datetime], None]]] = []
        self._numbers = itertools.count()
        self._planned = self.began = self.last = cluster.clock.now() + 2 * _MINUTE
        self._running = self.most_at_once = 0
        self.removed = self.abandoned = 0
        self.longest: dict[str, float] = defaultdict(float)
        self.cpu_seconds = 0.0

    def play(self) -> None:
        """Let sweep come each minute, and whatever it and the timers call for."""
        for minute in range(-1, _LASTS // _MINUTE):
            self._at(self.began + minute * _MINUTE, self._swept)
        while self._due and self._due[0][0] < self.began + _LASTS:
            moment, _, action = heapq.heappop(self._due)
            action(moment)

    def forgotten(self) -> int:
        """Return how many nodes are cordoned although nothing drains them."""
        cordoned = {
            node.name
            for node in self._cluster.ports.cluster.nodes()
            if node.unschedulable and node.deletion_at is None
        }
        return len(cordoned - self._going)

    def _at(self, moment: datetime, action: Callable[[datetime], None]) -> None:
        heapq.heappush(self._due, (moment, next(self._numbers), action))

    # --- functions

    def _called(self, name: str, moment: datetime, module: Any, service: Any, event: Any) -> Any:
        self._cluster.clock.become(MEMORY_MIB[name], moment)
        answer, spent = self._cluster.call(name, module, lambda: service, event)
        self._note(name, spent)
        return answer

    def _note(self, name: str, spent: Spent) -> None:
        self.longest[name] = max(self.longest[name], spent.took.total_seconds())
        self.cpu_seconds += spent.cpu_seconds
        self._react()

    def _swept(self, moment: datetime) -> None:
        event = encode(make_message(MessageKind.SWEEP, manifests.CLUSTER, moment))
        self._called("sweep", moment, sweep, self._sweep, event)

    def _looked(self, moment: datetime) -> None:
        # One invocation plans at a time: what comes meanwhile is done after it.
        if moment < self._planned:
            self._at(self._planned, self._looked)
            return
        self._cluster.clock.become(MEMORY_MIB["provision"], moment)
        spent = self._cluster.look()
        self._planned = self._cluster.clock.now()
        self._note("provision", spent)

    def _react(self) -> None:
        """Let messages be delivered and timers begin that an invocation has sent and started."""
        now, outbox = self._cluster.clock.now(), self._cluster.outbox
        if outbox.evaluations:
            self._at(now + WAKE_WINDOW + min(outbox.evaluation_delays), self._looked)
        outbox.evaluations.clear()
        outbox.evaluation_delays.clear()
        for timer in outbox.timers:
            wait = timedelta(seconds=timer.payload.get("wait_seconds", 0))
            if timer.kind == TimerKind.REPLACEMENT:
                self._going |= {name for name, _ in timer.payload["remove"]}
                self._running += 1
                self.most_at_once = max(self.most_at_once, self._running)
                self._at(now + wait, self._replaces(timer.payload))
            elif timer.kind == TimerKind.TERMINATION:
                self._at(now + wait, self._drains(timer.payload))
        outbox.timers.clear()
        with self._cluster.clock.elsewhere():
            self._pods_move()

    def _replaces(self, state: Mapping[str, Any]) -> Callable[[datetime], None]:
        def step(moment: datetime) -> None:
            after = self._called("replacement", moment, replacement, self._replacement, state)
            if after["next"] != DONE:
                self._at(self._after(after), self._replaces(after))
                return
            self._running -= 1
            if after["result"] != REPLACED_ALL:
                self.abandoned += 1
                self._going -= {name for name, _ in after["remove"]}

        return step

    def _drains(self, state: Mapping[str, Any]) -> Callable[[datetime], None]:
        def step(moment: datetime) -> None:
            after = self._called("termination", moment, termination, self._termination, state)
            if after["next"] != DONE:
                self._at(self._after(after), self._drains(after))
            elif after["result"] == "terminated":
                self.removed += 1
                self.last = max(self.last, self._cluster.clock.now())

        return step

    def _after(self, state: Mapping[str, Any]) -> datetime:
        return self._cluster.clock.now() + timedelta(seconds=state["wait_seconds"])

    # --- workloads and kubelets

    def _pods_move(self) -> None:
        """End the evicted pods, and let others of the same workloads run elsewhere."""
        for path in self._cluster.timed_api.evicted():
            reply = self._cluster.api.send("DELETE", path, body={"gracePeriodSeconds": 0})
            assert reply.ok, reply
            pods, name = heapq.heappop(self._pods)
            while name in self._going:
                pods, name = heapq.heappop(self._pods)
            assert pods < _ROOM
            heapq.heappush(self._pods, (pods + 1, name))
            self._cluster.pod_runs(name)
