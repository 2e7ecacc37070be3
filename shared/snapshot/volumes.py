"""The constraints of pending pods' volumes, read only if there are any."""

import itertools
from collections.abc import Iterable, Sequence

from shared.manifests.volumes.attachment_limits import (
    AttachmentLimits,
    claims_of,
    limited_drivers,
    split_pods,
    volumes_held_by,
    with_attachable,
)
from shared.manifests.volumes.node_demands import VolumeLookup
from shared.manifests.volumes.pod_demands import with_claims_resolved, with_volume_demands
from shared.model.errors import UnauthorizedError
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.volumes import RESOLVED
from shared.model.resources import Resources
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.planning.rules.existing_nodes import nominated
from shared.ports import Storage


def with_volumes(storage: Storage, snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """Return the snapshot with the claims of pending pods resolved.

    A volume's constraints are added to its pod's. If a driver limits its volumes, pods request
    attachments, and nodes, slots and instance types have them; otherwise none do. Nothing is read
    if no pod that waits for capacity has a claim. If the role may not read volumes, only the pods
    with claims wait, with that as their reason.
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
                replace(
                    pod,
                    scheduling=with_claims_resolved(
                        pod.scheduling, (), Resources(), [_text(error)]
                    ),
                )
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
    found = with_volume_demands(
        volumes, claiming, staying, drivers, leaving=leaving, promised=promised
    )
    resolved = _with(snapshot, itertools.chain.from_iterable(found))
    if not drivers:
        return resolved
    attached = [
        (attached_volume.node_name, attached_volume.driver, attached_volume.volume)
        for attached_volume in storage.attached_volumes()
    ]
    held = (*attached, *volumes_held_by(standing, volumes))
    return with_attachable(resolved, AttachmentLimits.of(drivers, limits, held, snapshot))


def _with(snapshot: ClusterSnapshot, changed: Iterable[Pod]) -> ClusterSnapshot:
    """Return the snapshot with these pods instead of those of the same UID."""
    found = {pod.uid: pod for pod in changed}
    return replace(
        snapshot,
        pending=tuple(found.get(pod.uid, pod) for pod in snapshot.pending),
        bound=tuple(found.get(pod.uid, pod) for pod in snapshot.bound),
    )


def _text(error: UnauthorizedError) -> str:
    return f"volume: its claims cannot be read: {error}; apply infra/cluster/access.yaml again"


def _read(storage: Storage, pods: Sequence[Pod]) -> VolumeLookup:
    """Read the claims of pods, and only the volumes and storage classes that these need."""
    namespaces = {pod.namespace for pod in pods}
    claims = storage.claims(namespaces)
    wanted = claims_of(pods)
    named = [claim for claim in claims if claim.key in wanted]
    open_ones = len(named) < len(wanted) or any(not claim.volume for claim in named)
    classes = storage.storage_classes() if open_ones else ()
    volumes = storage.volumes(
        {claim.volume for claim in named if claim.volume},
        {storage_class.name for storage_class in classes if storage_class.is_static}
        if open_ones
        else (),
    )
    return VolumeLookup(claims, volumes, classes, complete=True)
