"""What the volumes of waiting pods ask, read only when there are some."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace

from shared.manifests.volumes.attachment_limits import (
    Attachable,
    claims_of,
    held_by,
    limited_drivers,
    split_pods,
    with_attachable,
)
from shared.manifests.volumes.node_demands import Volumes
from shared.manifests.volumes.pod_demands import placed, resolve
from shared.model.errors import UnauthorizedError
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.volumes import RESOLVED
from shared.model.resources import Resources
from shared.model.snapshot import ClusterSnapshot
from shared.ports import Storage
from shared.scheduling.existing_nodes import nominated


def with_volumes(storage: Storage, snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """Return the snapshot with the claims of waiting pods resolved.

    A volume's constraints are added to its pod's. If a driver limits its volumes, pods request
    attachments, and nodes, slots and instance types have some; otherwise none do.
    Nothing is read when no pod that waits for capacity has a claim; where the role may not read
    volumes, those pods alone wait, with that as their reason.
    """
    claiming = [pod for pod in snapshot.pending if pod.scheduling.claims not in ((), RESOLVED)]
    if not any(pod.is_provisionable for pod in claiming):
        return snapshot
    try:
        return _resolved(storage, snapshot, claiming)
    except UnauthorizedError as error:
        return _with(
            snapshot,
            (
                replace(pod, scheduling=placed(pod.scheduling, (), Resources(), [_text(error)]))
                for pod in claiming
            ),
        )


def _resolved(
    storage: Storage, snapshot: ClusterSnapshot, claiming: Sequence[Pod]
) -> ClusterSnapshot:
    volumes = _read(storage, claiming)
    used = volumes.drivers(claiming)
    limits = storage.attach_limits() if used else ()
    drivers = limited_drivers(used, limits)
    namespaces = {pod.namespace for pod in claiming}
    standing = [
        pod for pod in snapshot.bound if pod.scheduling.claims and pod.namespace in namespaces
    ]
    staying, leaving = split_pods(standing, snapshot.nodes)
    promised = nominated(snapshot.slots) | snapshot.promised
    found = resolve(volumes, claiming, staying, drivers, leaving=leaving, promised=promised)
    resolved = _with(snapshot, itertools.chain.from_iterable(found))
    if not drivers:
        return resolved
    attached = [
        (attached_volume.node, attached_volume.driver, attached_volume.volume)
        for attached_volume in storage.attached_volumes()
    ]
    held = (*attached, *held_by(standing, volumes))
    return with_attachable(resolved, Attachable.of(drivers, limits, held, snapshot))


def _with(snapshot: ClusterSnapshot, changed: Iterable[Pod]) -> ClusterSnapshot:
    """Return the snapshot with these pods instead of those of the same uid."""
    found = {pod.uid: pod for pod in changed}
    return replace(
        snapshot,
        pending=tuple(found.get(pod.uid, pod) for pod in snapshot.pending),
        bound=tuple(found.get(pod.uid, pod) for pod in snapshot.bound),
    )


def _text(error: UnauthorizedError) -> str:
    return f"volume: its claims cannot be read: {error}; apply infra/cluster/access.yaml again"


def _read(storage: Storage, pods: Sequence[Pod]) -> Volumes:
    """Read the claims of pods, and of volumes and classes only what these need."""
    namespaces = {pod.namespace for pod in pods}
    claims = storage.claims(namespaces)
    wanted = claims_of(pods)
    named = [claim for claim in claims if claim.key in wanted]
    open_ones = len(named) < len(wanted) or any(not claim.volume for claim in named)
    classes = storage.storage_classes() if open_ones else ()
    volumes = storage.volumes(
        {claim.volume for claim in named if claim.volume},
        {pod_class.name for pod_class in classes if pod_class.by_hand} if open_ones else (),
    )
    return Volumes(claims, volumes, classes, complete=True)
