"""Objects in memory: one resourceVersion for all, an event log for each resource.

An object is kept as the bytes of its JSON without `kind` and `apiVersion`, so that a list is a
join of bytes and an event is two pieces of bytes put together.
"""

import asyncio
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice

import orjson

from infra.local.kube.errors import JsonObject, expired
from infra.local.kube.kinds import Resource
from infra.local.kube.selectors import NODE_NAME, selectable_fields

LOG_LIMIT = 10_000
"""Events kept for each resource; twice as many before the older half is dropped."""

Key = tuple[str, str]
"""(namespace, name); the namespace is empty for cluster-scoped objects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One state of one object.

    Attributes:
        raw: JSON without `kind` and `apiVersion`; never empty, `metadata` is always inside.
        fields: Values a field selector may ask for.
    """

    key: Key
    uid: str
    version: int
    raw: bytes
    labels: Mapping[str, str]
    fields: Mapping[str, str]

    def load(self) -> JsonObject:
        """Return a fresh copy of the object, without `kind` and `apiVersion`."""
        loaded: JsonObject = orjson.loads(self.raw)
        return loaded


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One event of a resource's log."""

    version: int
    type: str
    entry: Entry
    previous: Entry | None


Match = Callable[[Entry], bool]


@dataclass(slots=True)
class Collection:
    """All objects of one resource, sorted by key, with the log of their changes.

    Attributes:
        floor: A watch may start from this version or a later one.
        base: How many events were dropped from the front of the log.
        by_node: Keys of the pods of each node: an API server keeps an index of `spec.nodeName`, too
            (pkg/registry/core/pod/strategy.go, Indexers, 1.35).
    """

    floor: int
    entries: dict[Key, Entry] = field(default_factory=dict)
    order: list[Key] = field(default_factory=list)
    log: list[Change] = field(default_factory=list)
    base: int = 0
    by_node: dict[str, set[Key]] = field(default_factory=lambda: defaultdict(set))
    wakers: set[asyncio.Event] = field(default_factory=set)
    closed: bool = False

    def emit(self, change: Change) -> None:
        """Append an event, wake the watchers, forget the oldest events beyond the limit."""
        self.log.append(change)
        if len(self.log) >= 2 * LOG_LIMIT:
            self.forget(LOG_LIMIT)
        for waker in self.wakers:
            waker.set()

    def forget(self, count: int) -> None:
        if count:
            self.floor = self.log[count - 1].version
            del self.log[:count]
            self.base += count

    def place(self, entry: Entry, previous: Entry | None) -> None:
        if previous is None:
            insort(self.order, entry.key)
        else:
            self._off_its_node(previous)
        self.entries[entry.key] = entry
        if node := entry.fields.get(NODE_NAME):
            self.by_node[node].add(entry.key)

    def displace(self, entry: Entry) -> None:
        self._off_its_node(entry)
        del self.entries[entry.key]
        del self.order[bisect_left(self.order, entry.key)]

    def _off_its_node(self, entry: Entry) -> None:
        if node := entry.fields.get(NODE_NAME):
            self.by_node[node].discard(entry.key)
            if not self.by_node[node]:
                del self.by_node[node]

    def position_after(self, version: int) -> int:
        """Return the place in the log of the first event later than a version."""
        if version < self.floor:
            raise expired(f"too old resource version: {version} ({self.floor})")
        return self.base + bisect_right(self.log, version, key=lambda change: change.version)


class Store:
    """Every collection of one cluster."""

    def __init__(self, start_version: int) -> None:
        self.version = start_version
        self.compacted = start_version
        self._collections: dict[tuple[str, str], Collection] = {}

    def collection(self, resource: Resource) -> Collection:
        """Return the collection of a resource, made on first use."""
        found = self._collections.get(resource.storage)
        if found is None:
            found = self._collections[resource.storage] = Collection(floor=self.compacted)
        return found

    def get(self, resource: Resource, key: Key) -> Entry | None:
        return self.collection(resource).entries.get(key)

    def select(
        self,
        resource: Resource,
        namespace: str,
        match: Match,
        after: Key | None = None,
        most: int | None = None,
        node: str = "",
    ) -> list[Entry]:
        """Return the matching objects in the order of their keys.

        Args:
            after: Only keys greater than this one.
            most: How many are looked for; None for all.
            node: Only pods of this node; empty for all.
        """
        collection = self.collection(resource)
        order = sorted(collection.by_node.get(node, ())) if node else collection.order
        start = bisect_left(order, (namespace, "")) if namespace else 0
        end = bisect_left(order, (namespace + "\0", "")) if namespace else len(order)
        if after is not None:
            start = max(start, bisect_right(order, after))
        entries = collection.entries
        found = (entry for n in range(start, end) if match(entry := entries[order[n]]))
        return list(islice(found, most))

    def write(self, resource: Resource, obj: JsonObject, previous: Entry | None) -> Entry:
        """Store a state of an object under a new resourceVersion and tell the watchers.

        Args:
            previous: The state that is replaced; None for a new object.
        """
        self.version += 1
        entry = self.entry(resource, obj, self.version)
        collection = self.collection(resource)
        collection.place(entry, previous)
        kind = "ADDED" if previous is None else "MODIFIED"
        collection.emit(Change(version=entry.version, type=kind, entry=entry, previous=previous))
        return entry

    def entry(self, resource: Resource, obj: JsonObject, version: int) -> Entry:
        """Make the stored form of an object without storing it; the arguments are as in write."""
        obj.pop("kind", None)
        obj.pop("apiVersion", None)
        metadata = obj["metadata"]
        metadata["resourceVersion"] = str(version)
        return Entry(
            key=(metadata.get("namespace", ""), metadata["name"]),
            uid=metadata.get("uid", ""),
            version=version,
            raw=orjson.dumps(obj),
            labels=metadata.get("labels") or {},
            fields=selectable_fields(resource, obj),
        )

    def remove(self, resource: Resource, entry: Entry) -> Entry:
        """Drop an object; return its last state under the version of its deletion."""
        self.version += 1
        last = with_version(entry, self.version)
        collection = self.collection(resource)
        collection.displace(entry)
        change = Change(version=self.version, type="DELETED", entry=last, previous=entry)
        collection.emit(change)
        return last

    def drop_collection(self, resource: Resource) -> None:
        """Forget a resource altogether; its watches end."""
        dropped = self._collections.pop(resource.storage, None)
        if dropped is not None:
            dropped.closed = True
            for waker in dropped.wakers:
                waker.set()

    def in_namespace(self, namespace: str) -> list[tuple[tuple[str, str], Entry]]:
        """Return (storage, entry) of all objects in a namespace."""
        return [
            (storage, collection.entries[key])
            for storage, collection in self._collections.items()
            for key in list(collection.order)
            if key[0] == namespace
        ]

    def has_objects_in(self, namespace: str) -> bool:
        """Whether anything is left in a namespace."""
        for collection in self._collections.values():
            place = bisect_left(collection.order, (namespace, ""))
            if place < len(collection.order) and collection.order[place][0] == namespace:
                return True
        return False

    def owned_by(self, uid: str) -> list[tuple[tuple[str, str], Entry]]:
        """Return (storage, entry) of all objects that may name this uid as an owner."""
        needle = uid.encode()
        return [
            (storage, entry)
            for storage, collection in self._collections.items()
            for entry in list(collection.entries.values())
            if needle in entry.raw and entry.uid != uid
        ]

    def compact(self) -> None:
        """Forget the history: earlier watches and continue tokens are too old from here on."""
        self.compacted = self.version
        for collection in self._collections.values():
            collection.forget(len(collection.log))
            collection.floor = self.version
            for waker in collection.wakers:
                waker.set()


def with_version(entry: Entry, version: int) -> Entry:
    """Return the same state under another resourceVersion."""
    obj = entry.load()
    obj["metadata"]["resourceVersion"] = str(version)
    return replace(entry, version=version, raw=orjson.dumps(obj))
