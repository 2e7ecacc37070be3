"""The forwarder of one cluster: its own watch logic, fed from the model of the API server."""

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from functions.forwarder.observer import Collection, Observer
from functions.forwarder.outgoing_messages import OutgoingMessages
from functions.forwarder.views import NodeView, PodView, ProvisionerView, View
from shared.disruption.emptiness import empty_since
from shared.model import labels as keys
from shared.model.errors import UnavailableError
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.messages.message import Message
from shared.model.provisioner import Provisioner
from tests.simulation.cluster.apiserver import ApiServer
from tests.simulation.schedule.faults import Action, CallFaults, Site
from tests.simulation.schedule.kernel import START, Kernel, micros
from tests.simulation.schedule.seeded_random import draw

_LIFE: Final = 20.0
# The real one ticks every second; half as often costs a schedule half as much.
_TICK: Final = 2.0


class Forwarder:
    """Says what happens in one cluster, as long as it lives."""

    def __init__(
        self,
        kernel: Kernel,
        faults: CallFaults,
        api: ApiServer,
        publish: Callable[[Message], None],
    ) -> None:
        self._kernel = kernel
        self._faults = faults
        self._api = api
        self._publish = publish
        self._begin()
        api.watched.append(self._look)
        kernel.after(_LIFE, self._age)
        kernel.after(_TICK, self._tick)

    def _begin(self) -> None:
        self._lives = True
        self._seen: dict[str, object] = {}
        self._views: dict[str, View] = {}
        self._observer = Observer()
        self._out = OutgoingMessages(self._api.name, lambda: 0.5)
        self._flushing = False
        self._read()
        for collection in Collection:
            self._say(self._observer.collection_synced(collection, self._kernel.now()))

    def _look(self) -> None:
        if self._lives:
            self._read()

    def _read(self) -> None:
        """Tell the observer of everything that is another value than it was."""
        api, seen = self._api, self._seen
        # Names of pods have a slash, and names of nodes a dot.
        found: dict[str, object] = {**api.pods, **api.node_values, **api.provisioner_values}
        for key in [value for value in seen if value not in found]:
            del seen[key]
            self._observe(self._views.pop(key), None)
        for key in [key for key, value in found.items() if seen.get(key) is not value]:
            seen[key] = found[key]
            new, old = view(found[key]), self._views.get(key)
            self._views[key] = new
            if old is not None and old.uid != new.uid:
                self._observe(old, None)
                old = None
            self._observe(old, new)

    def _observe(self, old: View | None, new: View | None) -> None:
        self._say(self._observer.observe(old, new, self._kernel.now()))

    def _say(self, announcements: list) -> None:  # type: ignore[type-arg]
        if announcements:
            self._out.add(announcements, self._kernel.now())
            self._plan()

    def _plan(self) -> None:
        due = self._out.due_at()
        if due is not None and not self._flushing:
            self._flushing = True
            self._kernel.at(micros(due - START), self._flush)

    def _flush(self) -> None:
        self._flushing = False
        if not self._lives:
            return
        now = self._kernel.now()
        messages = self._out.next_messages(now)
        if messages:
            site = Site("forwarder", "PutEvents", self._api.name)
            chances = ((Action.ERROR, 0.02), (Action.ERROR_AFTER, 0.02))
            fault = self._faults.event(site, self._kernel.time, *chances)
            if fault is not Action.ERROR:
                for message in messages:
                    self._publish(message)
            if fault is None:
                self._out.record_response(messages, (), now)
            else:
                self._out.record_failure(messages, UnavailableError("PutEvents: no answer"), now)
        self._plan()

    def _tick(self) -> None:
        self._kernel.after(_TICK, self._tick)
        if self._lives:
            for collection in Collection:
                self._observer.collection_served(collection, self._kernel.now())
            self._say(self._observer.announcements_due(self._kernel.now()))

    def _age(self) -> None:
        self._kernel.after(_LIFE, self._age)
        if not self._lives:
            return
        site = Site("forwarder", "life", self._api.name)
        if self._faults.event(site, self._kernel.time, (Action.DIES, 0.01)) is not None:
            self._lives = False
            number = self._faults.counts[site]
            away = 20 + 100 * draw(self._faults.seed, "forwarder", self._api.name, number)
            self._kernel.after(away, self._begin)


def view(value: object) -> View:
    """Return what the forwarder keeps of an object."""
    match value:
        case Pod():
            return PodView(
                namespace=value.namespace,
                name=value.name,
                uid=value.uid,
                version=value.resource_version,
                node=value.node_name,
                waits_for_capacity=value.is_provisionable,
                occupies_node=value.counts_for_emptiness,
            )
        case Node():
            taints = sorted(taint.key for taint in value.taints)
            return NodeView(
                name=value.name,
                uid=value.uid,
                version=value.resource_version,
                provisioner=value.provisioner,
                deleting=value.deletion_at is not None,
                ready=value.ready is True,
                has_closing_taint=keys.NOT_READY_TAINT in taints,
                shown_resources=f"{value.allocatable.items} {taints}",
                empty_since=empty_since(value),
                joined=value.was_initialized,
            )
        case Provisioner():
            ttl = value.ttl_after_empty
            return ProvisionerView(
                name=value.name,
                uid=value.uid,
                version=value.resource_version,
                generation=value.generation,
                deleting=value.deleting,
                paused=value.paused,
                ttl_seconds=None if ttl is None else int(ttl.total_seconds()),
            )
    raise AssertionError(value)


HEARTBEAT = timedelta(minutes=5)
