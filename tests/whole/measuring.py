"""What came of a run: the figures of `make weeks`, and what only real components show."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from tests.weeks.bound import Bounds
from tests.weeks.meter import Played
from tests.weeks.traces import Change

PodLog = Iterable[tuple[int, Pod | None, Pod | None]]
NodeLog = Iterable[tuple[int, Node | None, Node | None]]
_WRITES: Final = ("create", "update", "patch", "delete", "deletecollection")


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One run.

    Attributes:
        state: Of the checkout.
        seconds: That were played.
        load: Load average of the machine at the end.
        kube_calls: Requests to the API server but watches, by verb and resource.
        evictions: By workload and cause.
        cpu_seconds, memory_mib: By group of processes; the most memory at one look.
        left_nodes, left_dollars_per_hour: At the end.
        problems: What went wrong with the run itself.
    """

    state: str
    trace: str
    system: str
    run: int
    seconds: float
    load: float
    bounds: Bounds
    played: Played
    kube_calls: dict[str, int]
    evictions: dict[str, int]
    cpu_seconds: dict[str, float]
    memory_mib: dict[str, float]
    left_nodes: int
    left_dollars_per_hour: float
    problems: tuple[str, ...]

    @property
    def kube_writes(self) -> int:
        """Return how many of the requests change something."""
        return sum(count for name, count in self.kube_calls.items() if name.split()[0] in _WRITES)

    @property
    def ec2_calls(self) -> int:
        """Return the calls to EC2."""
        return sum(n for name, n in self.played.calls.items() if name.startswith("ec2:"))


class Asked(NamedTuple):
    """What an autoscaler asked of the API server.

    Attributes:
        calls: By verb and resource, without watches.
        removed: Microsecond and name of each pod that it evicted or deleted.
    """

    calls: dict[str, int]
    removed: list[tuple[int, str]]


def asked_of(audit: Path, who: str, begun: int, ended: int) -> Asked:
    """Return what an autoscaler asked within a time.

    Args:
        who: A word in the names of its users, which are ARNs of roles or its service account.
        begun, ended: In microseconds.
    """
    calls: Counter[str] = Counter()
    removed: list[tuple[int, str]] = []
    with audit.open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            time = _micros(row["requestReceivedTimestamp"])
            user = (row.get("impersonatedUser") or row["user"])["username"]
            about = row.get("objectRef") or {}
            if not begun <= time < ended or who not in user.lower() or row["verb"] == "watch":
                continue
            kind = "/".join(filter(None, (about.get("resource"), about.get("subresource"))))
            call = f"{row['verb']} {kind}"
            calls[call] += 1
            done = (row.get("responseStatus") or {}).get("code") in (200, 201, 202)
            if done and call in ("create pods/eviction", "delete pods"):
                removed.append((time, about["name"]))
    return Asked(dict(calls.most_common()), removed)


def _micros(stamp: str) -> int:
    return int(datetime.fromisoformat(stamp).timestamp() * 1e6)


def restarted_of(changes: Iterable[tuple[int, Change]], pods: PodLog) -> set[str]:
    """Return the UIDs of pods that replace others without their user's wish.

    As in virtual time, a user is owed so many pods as are asked for; all others replace pods.

    Args:
        changes: What users changed, with the microsecond.
        pods: What happened to pods.
    """
    owed: Counter[str] = Counter()
    wanted: Counter[str] = Counter()
    left = sorted(changes, key=lambda entry: entry[0], reverse=True)
    found: set[str] = set()
    for time, old, new in pods:
        while left and left[-1][0] <= time:
            _, change = left.pop()
            name = change.workload
            more = change.replicas - wanted[name] + (change.replicas if change.rolls else 0)
            owed[name] = max(owed[name] + more, 0)
            wanted[name] = change.replicas
        if old is not None or new is None:
            continue
        name = new.labels["app"]
        if owed[name]:
            owed[name] -= 1
        else:
            found.add(new.uid)
    return found


def evicted_of(
    removed: Sequence[tuple[int, str]],
    pods: PodLog,
    nodes: NodeLog,
    causes: Mapping[str, str],
) -> list[tuple[int, Pod, str]]:
    """Return microsecond, pod and cause of each pod that was evicted or deleted.

    Args:
        removed: Microsecond and name of pods.
        causes: By name of pod, as far as Events say it; else what their Node is removed for.
    """
    running: dict[str, Pod] = {}
    for _, _, pod in pods:
        if pod is not None and pod.node_name:
            running[pod.name] = pod
    reasons: dict[str, str] = {}
    for _, _, node in nodes:
        if node is not None and (reason := node.annotations.get(keys.REMOVAL_REASON)):
            reasons[node.name] = reason
    return [
        (time, pod, causes.get(name) or reasons.get(pod.node_name, "not said"))
        for time, name in removed
        if (pod := running.get(name)) is not None
    ]


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return what has been added to each count."""
    return {
        name: count - before.get(name, 0)
        for name, count in sorted(after.items(), key=lambda entry: -entry[1])
        if count > before.get(name, 0)
    }
