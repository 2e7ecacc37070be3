"""What volumes require of nodes.

An existing volume is in one zone, and a storage class may create volumes in some zones only; a pod
with a claim on either can only run there. A node can attach a limited number of volumes of a
driver. kube-scheduler reads the same fields; binding and provisioning of volumes stay with it.

Source: https://kubernetes.io/docs/concepts/storage/persistent-volumes/#node-affinity,
https://kubernetes.io/docs/concepts/storage/storage-classes/#volume-binding-mode,
https://kubernetes.io/docs/concepts/storage/storage-limits/ (2026-11).
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from shared.model import labels as keys
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.volumes import EBS_DRIVER, Claim, StorageClass, Volume, inline_volume
from shared.model.requirements import Requirement, Requirements

Terms = tuple[Requirements, ...]

# Each claim multiplies the alternatives of those before it.
_MAX_TERMS: Final = 256
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


class _Problem(Exception):  # noqa: N818 -- never leaves this module
    """Why no node is suitable for a claim now."""


class VolumeUse(Struct, frozen=True, kw_only=True):
    """A claim of a pod, and the driver that attaches its volume.

    Attributes:
        claim: Namespace and name of the claim.
        driver: Of the volume it has or will get; empty for a volume that is not attached.
        volume: Name of the volume, empty while there is none.
        many_nodes: Whether pods on several nodes may use it at once.
        one_pod: Whether only a single pod may use it.
    """

    claim: str
    driver: str
    volume: str
    many_nodes: bool = False
    one_pod: bool = False


class VolumeDemands(Struct, frozen=True, kw_only=True):
    """Node affinity terms and volumes of all claims of one pod.

    Attributes:
        terms: What a node must satisfy, OR-ed; empty for any node.
        problems: Why no node is suitable now, for people.
        unknown: Names of claims without an object: they are assumed to fit anywhere.
    """

    terms: Terms = ()
    uses: tuple[VolumeUse, ...] = ()
    problems: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


class VolumeLookup:
    """Looks up what claims require of nodes.

    Args:
        claims: All claims.
        volumes: At least the volumes that the claims are bound to.
        classes: All storage classes.
        complete: Whether objects that are not given do not exist. From files they are only unknown:
            claims without volume or class then fit anywhere, and a class that binds immediately is
            assumed to do so wherever a node is launched; but not for a claim that is already
            pending in a cluster.
    """

    def __init__(
        self,
        claims: Iterable[Claim],
        volumes: Iterable[Volume],
        classes: Iterable[StorageClass],
        *,
        complete: bool,
    ) -> None:
        self._claims = {(claim.namespace, claim.name): claim for claim in claims}
        self._volumes = {volume.name: volume for volume in volumes}
        self._classes = {storage_class.name: storage_class for storage_class in classes}
        self._complete = complete
        # Of several defaults the newest counts, as in the API server.
        defaults = sorted(
            (storage_class for storage_class in self._classes.values() if storage_class.is_default),
            key=_by_age,
        )
        self._default = defaults[-1].name if defaults else ""

    def drivers(self, pods: Iterable[Pod]) -> frozenset[str]:
        """Return the drivers that attach volumes of these pods."""
        demands = (self.demands_of(pod) for pod in pods if pod.scheduling.claims)
        return frozenset({use.driver for pod_demands in demands for use in pod_demands.uses} - {""})

    def demands_of(self, pod: Pod) -> VolumeDemands:
        """Return what the pod's claims require."""
        to_be = {claim.name: claim for claim in pod.ephemeral}
        terms: Terms = ()
        uses, unknown = [], []
        problems: list[str] = []
        for name in pod.scheduling.claims:
            try:
                use, found = self._use(pod, name, to_be.get(name))
                terms = _both(terms, found)
            except _Problem as problem:
                problems.append(f"volume: {problem}")
                continue
            if use is None:
                unknown.append(name)
            else:
                uses.append(use)
        return VolumeDemands(
            terms=terms, uses=tuple(uses), problems=tuple(problems), unknown=tuple(unknown)
        )

    def _use(self, pod: Pod, name: str, to_be: Claim | None) -> tuple[VolumeUse | None, Terms]:
        """Return a use of a volume, None for a claim without an object, and its terms.

        Raises:
            _Problem: If no node is suitable for it now.
        """
        if inline_volume(name):
            use = VolumeUse(claim=name, driver=EBS_DRIVER, volume=inline_volume(name))
            return use, _inline_terms(name)
        claim = self._claim(pod, name, to_be)
        if claim is None:
            return None, ()
        driver, terms = self._place(claim)
        use = VolumeUse(
            claim=claim.key,
            driver=driver,
            volume=claim.volume,
            many_nodes=claim.many_nodes,
            one_pod=claim.one_pod,
        )
        return use, terms

    def _claim(self, pod: Pod, name: str, to_be: Claim | None) -> Claim | None:
        """Return a claim of a pod, None when there is no object for it.

        Raises:
            _Problem: If there is none, or it belongs to another pod.
        """
        claim = self._claims.get((pod.namespace, name))
        if claim is None:
            if to_be is None and self._complete:
                raise _Problem(f"claim {pod.namespace}/{name} does not exist: create it")
            return to_be
        if to_be is not None and claim.owner != pod.uid and self._complete:
            raise _Problem(f"claim {claim.key} was not made for this pod: delete or rename it")
        return claim

    def volume_of(self, namespace: str, claim: str) -> tuple[str, str]:
        """Return driver and name of the volume a claim is bound to, both empty for none."""
        if inline_volume(claim):
            return EBS_DRIVER, inline_volume(claim)
        found = self._claims.get((namespace, claim))
        volume = self._volumes.get(found.volume) if found is not None else None
        return (volume.driver, volume.name) if volume is not None else ("", "")

    def _place(self, claim: Claim) -> tuple[str, Terms]:
        """Return driver and terms of the volume a claim has or will get.

        Raises:
            _Problem: If it has none and a new node would not give it one.
        """
        if claim.deleting:
            raise _Problem(f"claim {claim.key} is being deleted")
        if claim.lost:
            raise _Problem(f"claim {claim.key} has lost its volume {claim.volume}")
        if claim.volume:
            volume = self._volumes.get(claim.volume)
            if volume is not None:
                if volume.problems:
                    raise _Problem(f"{claim.volume}: {volume.problems[0]}")
                return volume.driver, volume.terms
            if self._complete:
                raise _Problem(f"claim {claim.key} names volume {claim.volume}, which is not there")
            return "", ()
        return self._to_be(claim)

    def _to_be(self, claim: Claim) -> tuple[str, Terms]:
        name = self._default if claim.storage_class is None else claim.storage_class
        found = self._classes.get(name)
        if found is None:
            if not self._complete and claim.storage_class != "":
                return "", ()
            if not self._complete and (not claim.pending or self._free_of("")):
                return "", self._free(claim, "")
            if not name:
                raise _Problem(
                    f"claim {claim.key} has neither volume nor storage class: name a class"
                )
            raise _Problem(f"claim {claim.key} names storage class {name}, which does not exist")
        if not found.waits_for_first_consumer and (
            self._complete or (claim.pending and not found.is_static)
        ):
            raise _Problem(
                f"claim {claim.key} still waits for its volume: storage class {name} makes it "
                "before the pod has a node (volumeBindingMode Immediate)"
            )
        return ("", self._free(claim, name)) if found.is_static else (found.driver, found.terms)

    def _free(self, claim: Claim, storage_class: str) -> Terms:
        """Return the terms of statically provisioned free volumes that the claim could get."""
        free = self._free_of(storage_class)
        if not free and self._complete:
            raise _Problem(f"claim {claim.key}: no volume of class {storage_class} is free")
        if not all(volume.terms for volume in free):
            return ()
        return _joined(term for volume in free for term in volume.terms)

    def _free_of(self, storage_class: str) -> list[Volume]:
        return [
            volume
            for _, volume in sorted(self._volumes.items())
            if volume.is_free and volume.storage_class == storage_class and not volume.problems
        ]


def _inline_terms(claim: str) -> Terms:
    """Return the zone of a volume named `aws://<zone>/<id>`; no terms for any other name."""
    scheme, _, place = inline_volume(claim).partition("://")
    zone = place.partition("/")[0] if scheme == "aws" else ""
    return (Requirements.of((Requirement.of(keys.ZONE, zone),)),) if zone else ()


def _both(these: Terms, those: Terms) -> Terms:
    """Return the alternatives that satisfy both; no alternatives mean any node.

    Raises:
        _Problem: If no node can satisfy one of each, or there are too many.
    """
    if max(len(these), 1) * max(len(those), 1) > _MAX_TERMS:
        raise _Problem(f"they leave more than {_MAX_TERMS} alternatives of node affinity")
    if not these or not those:
        return _joined(these or those)
    merged = [requirements.merge(other) for requirements in these for other in those]
    possible = [requirements for requirements in merged if not requirements.empty_keys()]
    if not possible:
        key = merged[0].empty_keys()[0]
        raise _Problem(f"no node can have all of them: they differ about {key}")
    return _joined(possible)


def _joined(terms: Iterable[Requirements]) -> Terms:
    """Return the alternatives; those that differ only in their zones are merged."""
    zones: dict[tuple[Requirement, ...], frozenset[str]] = {}
    others = []
    for term in dict.fromkeys(terms):
        zone = term.get(keys.ZONE)
        if zone is None or zone.complement:
            others.append(term)
            continue
        rest = tuple(requirement for requirement in term if requirement.key != keys.ZONE)
        zones[rest] = zones.get(rest, frozenset()) | zone.values
    return (
        *others,
        *(
            Requirements.of((*rest, Requirement.of(keys.ZONE, *sorted(values))))
            for rest, values in zones.items()
        ),
    )


def _by_age(storage_class: StorageClass) -> tuple[datetime, str]:
    return storage_class.created_at or _LONG_AGO, storage_class.name
