"""Kubernetes Events about objects, counted instead of repeated.

Source: https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/ (2026-08).
"""

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, Final

from shared.kube.api import MERGE_PATCH, KubeApi, path_to, raise_unless_ok
from shared.kube.lists import list_all
from shared.kube.paths_and_documents import NAMESPACES_PATH
from shared.manifests.raw_json import Raw, mapping, text
from shared.model.dialect import BY_KIND
from shared.model.errors import AutoscalerError
from shared.model.values import replace
from shared.ports import KubernetesEvent, PastEvent
from shared.ports.executor import MAX_CONCURRENT_CALLS

_COMPONENT: Final = "dovetail"
_MESSAGE_LENGTH: Final = 1024
_API_VERSIONS: Final = {kind.value: found.owner_version for kind, found in BY_KIND.items()}
_LOG: Final = logging.getLogger(__name__)


class KubeEvents:
    """Writes Events; the name has a hash of the content, so that a repeat raises the count."""

    def __init__(self, api: KubeApi, now: Callable[[], datetime]) -> None:
        self._api = api
        self._now = now

    def record(self, kube_events: Sequence[KubernetesEvent]) -> None:
        """Write all Events, several at a time; failures are logged, never raised."""
        counts: dict[KubernetesEvent, int] = {}
        for kube_event in kube_events:
            counts[kube_event] = counts.get(kube_event, 0) + 1
        if len(counts) <= 1:
            for event, count in counts.items():
                self._write(event, count)
            return
        with ThreadPoolExecutor(min(MAX_CONCURRENT_CALLS, len(counts))) as executor:
            list(executor.map(self._write, counts, counts.values()))

    def _write(self, event: KubernetesEvent, count: int) -> None:
        try:
            self._create_or_count(event, count)
        except AutoscalerError as error:
            _LOG.warning(
                "event %s about %s %s: %s",
                event.reason,
                event.kind,
                event.name,
                error,
            )

    def _create_or_count(self, event: KubernetesEvent, count: int) -> None:
        at = self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        document = _event_document(event, count, at)
        namespace, name = document["metadata"]["namespace"], document["metadata"]["name"]
        path = path_to(NAMESPACES_PATH, namespace, "events")
        made = self._api.send("POST", path, body=document)
        if made.status != 409:
            raise_unless_ok(made, f"event {name}")
            return
        known = self._api.get(path_to(path, name))
        changed = {
            "metadata": {"resourceVersion": known["metadata"]["resourceVersion"]},
            "count": int(known.get("count") or 1) + count,
            "lastTimestamp": at,
        }
        counted = self._api.send(
            "PATCH", path_to(path, name), body=changed, content_type=MERGE_PATCH
        )
        raise_unless_ok(counted, f"event {name}")


def events_about(api: KubeApi, kind: str, namespace: str, name: str) -> tuple[PastEvent, ...]:
    """Return the Events about an object, oldest first; those without a time come first."""
    fields = f"involvedObject.kind={kind},involvedObject.name={name}"
    path = path_to(NAMESPACES_PATH, namespace or "default", "events")
    found = list_all(api, path, _past_event, (("fieldSelector", fields),))
    return tuple(sorted(found, key=_by_time))


def _past_event(raw: Raw) -> PastEvent:
    series, metadata = mapping(raw.get("series")), mapping(raw.get("metadata"))
    # Source: of events.k8s.io/v1 have eventTime and series, older writers the other two,
    # https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/ (2026-08).
    times = (
        series.get("lastObservedTime"),
        raw.get("lastTimestamp"),
        raw.get("eventTime"),
        metadata.get("creationTimestamp"),
    )
    count = series.get("count") or raw.get("count")
    return PastEvent(
        at=next((found for time in times if (found := _time(time)) is not None), None),
        source=text(raw.get("reportingComponent"))
        or text(mapping(raw.get("source")).get("component")),
        reason=text(raw.get("reason")),
        message=text(raw.get("message")),
        count=count if isinstance(count, int) else 1,
    )


def _time(value: object) -> datetime | None:
    try:
        return datetime.fromisoformat(text(value)).astimezone(UTC)
    except ValueError:
        return None


def _by_time(event: PastEvent) -> tuple[datetime, PastEvent]:
    at = event.at or datetime.min.replace(tzinfo=UTC)
    return at, replace(event, at=at)


def _event_document(event: KubernetesEvent, count: int, at: str) -> dict[str, Any]:
    parts = (
        event.kind,
        event.namespace,
        event.name,
        event.uid,
        event.severity,
        event.reason,
        event.message,
    )
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    about: Mapping[str, str] = {
        "apiVersion": event.api_version or _API_VERSIONS.get(event.kind, "v1"),
        "kind": event.kind,
        "namespace": event.namespace,
        "name": event.name,
        "uid": event.uid,
    }
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            # Events about cluster-wide objects live in `default`.
            "namespace": event.namespace or "default",
            "name": f"{event.name[:200].rstrip('.-')}.{digest}",
        },
        "involvedObject": {key: value for key, value in about.items() if value},
        "type": event.severity.value,
        "reason": event.reason,
        "message": event.message[:_MESSAGE_LENGTH],
        "source": {"component": _COMPONENT},
        "reportingComponent": _COMPONENT,
        "reportingInstance": _COMPONENT,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": count,
    }
