"""Views of objects by keyword, and an observer fed with them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from functions.forwarder.observer import Announcement, Collection, Observer
from functions.forwarder.views import View, view_node, view_pod, view_provisioner

T0 = datetime(2026, 1, 1, tzinfo=UTC)
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def pod(
    name: str = "p",
    *,
    waits: bool = False,
    node: str = "",
    phase: str = "Pending",
    owner: str = "",
    version: str = "1",
    **metadata: Any,
) -> View:
    references = [{"kind": owner, "controller": True}] if owner else []
    return view_pod(
        {
            "metadata": {
                "namespace": "shop",
                "name": name,
                "uid": f"uid-{name}",
                "resourceVersion": version,
                "ownerReferences": references,
                **metadata,
            },
            "spec": {"nodeName": node},
            "status": {"phase": phase, "conditions": [UNSCHEDULABLE] if waits else []},
        }
    )


def node(
    name: str = "n1",
    *,
    ours: bool = True,
    ready: bool = True,
    taints: tuple[str, ...] = (),
    deleting: bool = False,
    emptied: str = "",
    uid: str = "",
    joined: bool = True,
    price: str = "",
    **allocatable: str,
) -> View:
    """Return a node; it is labelled as initialized unless it is held or `joined` is false."""
    metadata: dict[str, Any] = {"name": name, "uid": uid or f"uid-{name}", "labels": {}}
    metadata["annotations"] = {}
    if ours:
        metadata["labels"]["karpenter.sh/provisioner-name"] = "default"
        metadata["annotations"]["dovetail.dev/slot"] = f"{name}/0/0"
    if joined and not set(HELD) & set(taints):
        metadata["labels"]["karpenter.sh/initialized"] = "true"
    if emptied:
        metadata["annotations"]["karpenter.sh/emptiness-timestamp"] = emptied
    if price:
        metadata["annotations"]["dovetail.dev/price-micros-per-hour"] = price
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    conditions = [{"type": "Ready", "status": "True" if ready else "Unknown"}]
    return view_node(
        {
            "metadata": metadata,
            "spec": {"taints": [{"key": taint} for taint in taints]},
            "status": {"conditions": conditions, "allocatable": allocatable},
        }
    )


def provisioner(generation: int = 1, *, ttl: int | None = None, **metadata: Any) -> View:
    return view_provisioner(
        {
            "metadata": {"name": "default", "uid": "u", "generation": generation, **metadata},
            "spec": {} if ttl is None else {"ttlSecondsAfterEmpty": ttl},
        }
    )


HELD = ("karpenter.sh/not-ready",)


class Cluster:
    """An observer fed by name: hands over the old view of each object by itself.

    Its first heartbeat is sent when it is synced.
    """

    def __init__(self, *, synced: bool = True) -> None:
        self.observer = Observer()
        self._known: dict[str, View] = {}
        if synced:
            self.sync()

    def sync(self) -> list[tuple[str, str]]:
        found: list[Announcement] = []
        for collection in Collection:
            found += self.observer.collection_synced(collection, T0)
        self.observer.announcements_due(T0)
        return said(found)

    def see(self, view: View, now: datetime = T0) -> list[tuple[str, str]]:
        old = self._known.get(view.uid)
        self._known[view.uid] = view
        return said(self.observer.observe(old, view, now))

    def lose(self, view: View, now: datetime = T0) -> list[tuple[str, str]]:
        return said(self.observer.observe(self._known.pop(view.uid), None, now))

    def tick(self, seconds: float) -> list[tuple[str, str]]:
        return said(self.observer.announcements_due(at(seconds)))


def said(announcements: list[Announcement]) -> list[tuple[str, str]]:
    return [(kind.value, ref.name if ref else "") for kind, ref in announcements]
