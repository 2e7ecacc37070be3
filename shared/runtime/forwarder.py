"""The runtime of the forwarder."""

import json
import os
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final, Protocol, TypeVar

from msgspec import Struct

from shared.aws.event_bus import EventBusPublisher
from shared.kube.api import Decode, KubeApi
from shared.kube.kept.decoding import NODE_PAGE_DECODER, POD_PAGE_DECODER
from shared.kube.kubeconfig import connect_in_cluster, connect_kubeconfig
from shared.kube.nodes import NODES_PATH, PODS_PATH
from shared.kube.provisioners import NODE_POOLS_PATH, PROVISIONERS_PATH
from shared.kube.reflector import Reflector, ReflectorOptions
from shared.runtime.system import new_trace
from shared.settings import ForwarderSettings

T = TypeVar("T")

PATHS: Final[Mapping[str, str]] = {
    "pods": PODS_PATH,
    "nodes": NODES_PATH,
    "provisioners": PROVISIONERS_PATH,
    "nodepools": NODE_POOLS_PATH,
}
# A cluster need not define both kinds.
_OPTIONAL: Final = frozenset({"nodepools", "provisioners"})
_DECODERS: Final[Mapping[str, Decode]] = {"pods": POD_PAGE_DECODER, "nodes": NODE_PAGE_DECODER}


class Watch(Protocol):
    """A running watch of one collection."""

    @property
    def is_alive(self) -> bool:
        """Whether its thread runs."""
        ...

    def start(self) -> None:
        """Start it."""
        ...

    def stop(self, wait: timedelta = ...) -> None:
        """Stop it, waiting for its thread at most that long."""
        ...


class ForwarderParts(Struct, frozen=True, kw_only=True):
    """Settings and adapters of the forwarder."""

    settings: ForwarderSettings
    bus: EventBusPublisher
    api: KubeApi

    def watch(
        self,
        collection: str,
        view: Callable[[Mapping[str, Any]], T],
        changed: Callable[[T | None, T | None], None],
        synced: Callable[[], None],
        served: Callable[[], None],
    ) -> Watch:
        """Return a watch of a collection, by its name in `PATHS`, not yet started.

        Args:
            view: Returns what is kept of a raw object.
            changed: Called with the old and the new value of an object, None where there is none.
            synced: Called once, when the first list is complete.
            served: Called each time that the API server has served a list or a watch, or has
                responded that an optional kind does not exist.
        """
        tuning = ReflectorOptions(
            optional=collection in _OPTIONAL, decode=_DECODERS.get(collection, json.loads)
        )
        return Reflector(
            self.api,
            PATHS[collection],
            view,
            changed,
            synced=synced,
            served=served,
            options=tuning,
        )


def forwarder_parts(environment: Mapping[str, str] | None = None) -> ForwarderParts:
    """Return the parts that the environment (by default the process's own) describes.

    Raises:
        SettingsError: If a variable is missing or wrong.
        PermanentError: If neither a service account nor the kubeconfig file can be used.
    """
    found = os.environ if environment is None else environment
    settings = ForwarderSettings.from_environment(found)
    timeout = timedelta(seconds=settings.api_timeout_seconds)
    if settings.kubeconfig:
        api = connect_kubeconfig(settings.kubeconfig, timeout=timeout)
    else:
        api = connect_in_cluster(timeout=timeout)
    # The SDK itself reads only AWS_DEFAULT_REGION.
    region = found.get("AWS_REGION") or found.get("AWS_DEFAULT_REGION")
    trace = new_trace if settings.tracing else None
    bus = EventBusPublisher(settings.bus, region=region, timeout=timeout, trace=trace)
    return ForwarderParts(settings=settings, bus=bus, api=api)
