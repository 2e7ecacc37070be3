"""Describing and terminating many machines with few calls.

Each drain is a timer of its own, and a thousand of them may run at once. None calls EC2 by itself:
each writes into the ledger which machine it needs and whether to terminate it. An execution that
finds the turn free takes it for a moment, calls EC2 once for all of them, and writes the answers
to the ledger. A single drain finds the turn free, so it is no slower. A crash during a turn costs
a pause of seconds: the next execution reads what is needed and calls again, and terminating a
machine twice is harmless.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from shared.events.group_events import Machine, record_terminated
from shared.events.node_events import cause_of, price_of
from shared.model import labels as keys
from shared.model.ec2.launches import Instance
from shared.model.errors import PermanentError, ThrottledError
from shared.model.kubernetes.nodes import Node
from shared.model.memo import Memo
from shared.ports import NodePorts

_ENDING: Final = frozenset({"shutting-down", "terminated"})
# No kubelet runs on such a machine.
_OFF: Final = frozenset({"stopped", "terminated"})
GOING: Final = "going#"
ANSWERS: Final = "machines"
# How long a turn is kept free of others, longer than its calls take on a good day.
_TURN: Final = timedelta(seconds=10)
# Between turns: (fewer machines than that are going, pause). Many gather, few do not wait.
_SHORTEST_PAUSE: Final = timedelta(seconds=2)
_PAUSES: Final = (
    (3, timedelta(0)),
    (10, timedelta(seconds=4)),
    (50, timedelta(seconds=8)),
    (300, timedelta(seconds=12)),
)
_LONGEST_PAUSE: Final = timedelta(seconds=15)
# What EC2 said is believed for so long while a drain goes on, and while a machine shuts down.
_BELIEVED: Final = timedelta(seconds=30)
_BELIEVED_ENDING: Final = timedelta(seconds=2)
_KEEP: Final = timedelta(days=1)
# Machines described so lately count as terminating together, though their drains may be over.
_RECENT: Final = timedelta(seconds=15)
# Answers of one turn: one row of the ledger holds them.
_MOST: Final = 3000
# Of a call that EC2 refuses as a whole, so many are tried one by one.
_MOST_REFUSED: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What EC2 last said about a machine.

    Attributes:
        state: Empty when EC2 does not know it.
        ours: Whether its tags prove that it was bought for this cluster, and its name that it is
            the instance of the Node that is removed.
        refused: Why EC2 does not end it, empty when it does.
    """

    state: str
    ours: bool
    at: datetime
    refused: str = ""

    @property
    def has_ended(self) -> bool:
        """Whether it is terminated: nothing changes any more."""
        return self.state == "terminated"

    @property
    def is_ending(self) -> bool:
        """Whether it is terminated or shutting down; until it is terminated it may run pods."""
        return self.state in _ENDING

    @property
    def is_off(self) -> bool:
        """Whether it is terminated or stopped: it runs no pods."""
        return self.state in _OFF


class Ending:
    """Looks at the machines of one cluster that are going, and ends them, together."""

    def __init__(self, ports: NodePorts) -> None:
        self._ports = ports
        self._name = ports.cluster.name

    def look(
        self, instance_id: str, *, end: bool, node: Node | None = None
    ) -> tuple[Seen | None, timedelta]:
        """Return what EC2 says about a machine, and when to look again at the earliest.

        Args:
            end: Whether to terminate the machine; once asked for, it is terminated even if the
                caller fails.
            node: Of a machine to be terminated: its Provisioner gets an Event.

        Returns:
            None as the first when no execution has described it lately.

        Raises:
            PermanentError: If EC2 refuses to terminate this very machine.
            RetryableError: If the ledger or EC2 cannot be asked now.
        """
        ledger, now = self._ports.ledger, self._ports.clock.now()
        answers = ledger.memo(self._name, ANSWERS)
        row = answers.value.get("seen", {}).get(instance_id)
        seen = _seen(row) if row is not None else None
        fresh = seen is not None and not _is_old(seen, now)
        if seen is not None and seen.refused and fresh:
            self.forget(instance_id)
            raise PermanentError(f"ec2 TerminateInstances: {instance_id}: {seen.refused}")
        if seen is not None and (seen.has_ended or (fresh and (seen.is_ending or not end))):
            return seen, _SHORTEST_PAUSE
        about = {} if node is None else {"node": _about(node)}
        wanted = Memo(name=f"{GOING}{instance_id}", value={"end": end, **about})
        ledger.put_memo(self._name, wanted, now + _KEEP)
        free_at = _free_at(answers)
        if now < free_at:
            # A turn that goes on now is over long before it must be.
            wait = timedelta(0) if answers.value.get("busy") else free_at - now
            return (None if end else seen), max(wait, _SHORTEST_PAUSE)
        return self._ask_all(answers, now).get(instance_id), _SHORTEST_PAUSE

    def forget(self, instance_id: str) -> None:
        """Look no more at a machine."""
        self._ports.ledger.drop_memo(self._name, f"{GOING}{instance_id}")

    def _ask_all(self, answers: Memo, now: datetime) -> Mapping[str, Seen]:
        """Take the turn, ask for all machines that are going, and leave the answers."""
        ledger = self._ports.ledger
        taken = {**answers.value, "free_at": (now + _TURN).isoformat(), "busy": True}
        turn = replace(answers, value=taken)
        if not ledger.change_memo(self._name, turn, now + _KEEP):
            return {}
        wanted = {
            memo.name.removeprefix(GOING): memo.value
            for memo in ledger.memos(self._name, GOING)[:_MOST]
        }
        going = {instance_id: value.get("end") is True for instance_id, value in wanted.items()}
        before = _all_seen(answers)
        known = {item: before.get(item) for item in going}
        due = [
            item
            for item, seen in known.items()
            if seen is None or not seen.state or (not seen.has_ended and _is_old(seen, now))
        ]
        found = {item: seen for item, seen in known.items() if seen is not None}
        nodes = {item: row.get("node", {}).get("name", "") for item, row in wanted.items()}
        found |= self._described({item: nodes[item] for item in due}, now)
        to_end = [
            item
            for item, seen in found.items()
            if going[item] and seen.state and not seen.is_ending and seen.ours
        ]
        recent = {item: seen for item, seen in before.items() if now - seen.at < _RECENT}
        pause = _pause_after(len({*going, *recent}))
        try:
            found |= self._ended(to_end, found)
        except ThrottledError as error:
            # What was seen is worth keeping; the next turn goes on from it.
            pause = max(pause, error.delay or _SHORTEST_PAUSE)
        value = {
            "free_at": (now + pause).isoformat(),
            "seen": {item: _out(seen) for item, seen in sorted({**recent, **found}.items())},
        }
        left = replace(turn, value=value, version=turn.version + 1)
        ledger.change_memo(self._name, left, now + _KEEP)
        record_terminated(
            self._ports,
            [
                _machine(wanted[instance_id]["node"])
                for instance_id in to_end
                if found[instance_id].is_ending and "node" in wanted[instance_id]
            ],
        )
        return found

    def _described(self, nodes: Mapping[str, str], now: datetime) -> dict[str, Seen]:
        """Return what EC2 says about machines, given their Nodes' names; empty for no Node."""
        shown = (
            {entry.instance_id: entry for entry in self._ports.cloud.instances(list(nodes))}
            if nodes
            else {}
        )
        return {
            item: _answer(shown.get(item), self._name, node, now) for item, node in nodes.items()
        }

    def _ended(self, ids: Sequence[str], found: Mapping[str, Seen]) -> dict[str, Seen]:
        """End machines; one that EC2 refuses to end must not keep the others alive.

        Nor may one whose tags give no right to end it: its own drain reads so from its answer, and
        the execution that has the turn may be of another machine.
        """
        if not ids:
            return {}
        try:
            self._ports.cloud.terminate(ids)
        except PermanentError as error:
            if len(ids) == 1:
                return {ids[0]: replace(found[ids[0]], refused=str(error) or "refused")}
        else:
            now = self._ports.clock.now()
            return {value: replace(found[value], state="shutting-down", at=now) for value in ids}
        ended: dict[str, Seen] = {}
        half = len(ids) // 2
        for part in (ids[:half], ids[half:]):
            if sum(1 for seen in ended.values() if seen.refused) < _MOST_REFUSED:
                ended |= self._ended(part, found)
        return ended


def _about(node: Node) -> dict[str, Any]:
    """Return what the Event on a Provisioner says about a node whose machine is terminated."""
    return {
        "name": node.name,
        "provisioner": node.provisioner,
        "instance_type": node.labels.get(keys.INSTANCE_TYPE, ""),
        "capacity_type": node.labels.get(keys.CAPACITY_TYPE, ""),
        "price_micros_per_hour": price_of(node),
        "cause": cause_of(node),
    }


def _machine(row: Mapping[str, Any]) -> Machine:
    return Machine(
        name=row["name"],
        provisioner=row["provisioner"],
        instance_type=row["instance_type"],
        capacity_type=row["capacity_type"],
        price_micros_per_hour=row["price_micros_per_hour"],
        cause=row["cause"],
    )


def _answer(instance: Instance | None, cluster: str, node: str, now: datetime) -> Seen:
    if instance is None:
        return Seen(state="", ours=True, at=now)
    ours = instance.tags.get(keys.TAG_CLUSTER) == cluster and (not node or instance.is_of(node))
    return Seen(state=instance.state, ours=ours, at=now)


def _is_old(seen: Seen, now: datetime) -> bool:
    return now - seen.at >= (_BELIEVED_ENDING if seen.is_ending else _BELIEVED)


def _pause_after(machines: int) -> timedelta:
    return next((pause for most, pause in _PAUSES if machines < most), _LONGEST_PAUSE)


def _free_at(answers: Memo) -> datetime:
    return datetime.fromisoformat(answers.value.get("free_at", "1970-01-01T00:00:00+00:00"))


def _all_seen(answers: Memo) -> dict[str, Seen]:
    return {entry: _seen(row) for entry, row in answers.value.get("seen", {}).items()}


def _seen(row: Mapping[str, Any]) -> Seen:
    return Seen(
        state=row["state"],
        ours=row["ours"],
        at=datetime.fromisoformat(row["at"]),
        refused=row.get("refused", ""),
    )


def _out(seen: Seen) -> dict[str, Any]:
    row = {"state": seen.state, "ours": seen.ours, "at": seen.at.isoformat(timespec="seconds")}
    return {**row, "refused": seen.refused} if seen.refused else row
