"""How far the forwarder of a cluster has come, from its Deployment to its heartbeat."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from shared.manifests.raw_json import Raw, condition, integer, mapping, mappings, text, timestamp

# A forwarder sends a heartbeat every five minutes: one older than two intervals is stale.
FRESH: Final = timedelta(minutes=11)


class Progress(Struct, frozen=True):
    """The progress of an installation.

    Attributes:
        done: Whether a heartbeat of the forwarder that runs now has arrived.
        runs: Whether its pod is ready.
        text: What it waits for.
    """

    done: bool
    runs: bool
    text: str


def forwarder_progress(
    deployment: Raw | None, pods: Sequence[Raw], last_heartbeat: datetime | None, now: datetime
) -> Progress:
    """Return how far the forwarder has come.

    A heartbeat counts if it was sent after the start of the pod. Both times come from the clock of
    the pod's node, so clock skew does not matter.

    Args:
        pods: Pods of its namespace.
        last_heartbeat: The time of its last heartbeat, as the ledger has it.
        now: The current time; a minute more or less makes no difference.
    """
    if deployment is None:
        return Progress(done=False, runs=False, text="there is no Deployment")
    if not _is_rolled_out(deployment):
        return Progress(done=False, runs=False, text=_waits_for(deployment, pods))
    started = [timestamp(mapping(pod.get("status")).get("startTime")) for pod in _current(pods)]
    since = min((at for at in started if at is not None), default=None)
    if (
        last_heartbeat is not None
        and since is not None
        and since <= last_heartbeat
        and now - last_heartbeat <= FRESH
    ):
        return Progress(
            done=True,
            runs=True,
            text=f"heartbeat of {last_heartbeat:%H:%M:%S} UTC has come through",
        )
    return Progress(done=False, runs=True, text="its pod is ready; no heartbeat of it yet")


def _is_rolled_out(deployment: Raw) -> bool:
    """Return whether all pods are of the newest generation and ready, as kubectl rollout does.

    Source: https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#complete-deployment
    (2026-11).
    """
    metadata, status = mapping(deployment.get("metadata")), mapping(deployment.get("status"))
    wanted = integer(mapping(deployment.get("spec")).get("replicas"))
    wanted = 1 if wanted is None else wanted
    counts = {integer(status.get(key)) for key in ("replicas", "updatedReplicas")}
    observed = integer(status.get("observedGeneration")) or 0
    return (
        observed >= (integer(metadata.get("generation")) or 0)
        and counts == {wanted}
        and (integer(status.get("availableReplicas")) or 0) >= wanted
    )


def _current(pods: Sequence[Raw]) -> Iterator[Raw]:
    """Yield the forwarder's pods that are not being deleted."""
    for pod in pods:
        metadata = mapping(pod.get("metadata"))
        labels = mapping(metadata.get("labels"))
        if labels.get("app.kubernetes.io/component") == "forwarder" and not metadata.get(
            "deletionTimestamp"
        ):
            yield pod


def _waits_for(deployment: Raw, pods: Sequence[Raw]) -> str:
    """Return why the rollout is not complete, from the pods, else from the Deployment."""
    for pod in _current(pods):
        name, status = text(mapping(pod.get("metadata")).get("name")), mapping(pod.get("status"))
        scheduled = condition(status, "PodScheduled")
        if scheduled.get("status") == "False":
            return f"pod {name}: {_reason_and_message(scheduled)}"
        for container in mappings(status.get("containerStatuses")):
            waiting = mapping(mapping(container.get("state")).get("waiting"))
            if waiting and waiting.get("reason") not in {"ContainerCreating", "PodInitializing"}:
                return f"pod {name}: {_reason_and_message(waiting)}"
    failed = condition(mapping(deployment.get("status")), "ReplicaFailure")
    if failed.get("status") == "True":
        return f"no pod: {_reason_and_message(failed)}"
    return "its pod starts"


def _reason_and_message(found: Raw) -> str:
    return " ".join(f"{text(found.get('reason'))}: {text(found.get('message'))}".split()).rstrip(
        ":"
    )
