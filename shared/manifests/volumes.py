"""Where volumes allow pods to be: PersistentVolumes and StorageClasses as node affinity.

A volume that exists stands in one zone, and a storage class may make volumes in some zones only;
a pod with a claim on either can only run there. kube-scheduler reads the same fields.

Source: https://kubernetes.io/docs/concepts/storage/persistent-volumes/#node-affinity,
https://kubernetes.io/docs/concepts/storage/storage-classes/#allowed-topologies (2026-11).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from shared.manifests.affinity import required_terms
from shared.manifests.documents import Document
from shared.manifests.fields import Raw, mapping, mappings, text, text_map, texts
from shared.model import labels as keys
from shared.model.pods import Pod, Scheduling
from shared.model.requirements import Requirement, Requirements

_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
# Each claim multiplies the alternatives of those before it.
_MAX_TERMS: Final = 256
# Between zones in the label of a volume that stands in several.
_ZONE_BORDER: Final = "__"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A pod with what its volumes ask of its node.

    Attributes:
        unknown: Its claims that nobody described, sorted: they are taken to fit anywhere.
    """

    pod: Pod
    unknown: tuple[str, ...]


class Volumes:
    """Looks up what claims ask of nodes."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._claims: dict[tuple[str, str], Raw] = {}
        self._volumes: dict[str, Raw] = {}
        self._classes: dict[str, Raw] = {}
        self._default_class = ""
        for one in documents:
            if one.kind == "PersistentVolumeClaim":
                self._claims[one.namespace, one.name] = one.raw
            elif one.kind == "PersistentVolume":
                self._volumes[one.name] = one.raw
            elif one.kind == "StorageClass":
                self._classes[one.name] = one.raw
                annotations = text_map(mapping(one.raw.get("metadata")).get("annotations"))
                if annotations.get(_DEFAULT_CLASS) == "true":
                    self._default_class = one.name

    def place(self, pod: Pod, templates: Mapping[str, Raw]) -> Placed:
        """Return the pod with its volumes' rules among its node affinity, its claims resolved.

        Args:
            templates: Claims that will be made for this pod, by name.
        """
        if not pod.scheduling.claims:
            return Placed(pod=pod, unknown=())
        problems: list[str] = []
        terms = pod.scheduling.required_terms
        unknown = []
        for name in pod.scheduling.claims:
            claim = self._claims.get((pod.namespace, name)) or templates.get(name)
            if claim is None:
                unknown.append(name)
            else:
                terms = _both(terms, self._terms(claim, problems), problems)
        scheduling: Scheduling = replace(
            pod.scheduling,
            required_terms=terms,
            claims=(),
            refusals=tuple(dict.fromkeys((*pod.scheduling.refusals, *problems))),
        )
        return Placed(pod=replace(pod, scheduling=scheduling), unknown=tuple(unknown))

    def _terms(self, claim: Raw, problems: list[str]) -> tuple[Requirements, ...]:
        spec = mapping(claim.get("spec"))
        volume = self._volumes.get(text(spec.get("volumeName")))
        if volume is not None:
            return _of_volume(volume, problems)
        name = spec.get("storageClassName", self._default_class)
        topologies = mappings(self._classes.get(text(name), {}).get("allowedTopologies"))
        return tuple(
            Requirements.of(
                Requirement.of(text(one.get("key")), *texts(one.get("values")))
                for one in mappings(topology.get("matchLabelExpressions"))
            )
            for topology in topologies
        )


def _of_volume(volume: Raw, problems: list[str]) -> tuple[Requirements, ...]:
    required = mapping(mapping(volume.get("spec")).get("nodeAffinity")).get("required")
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    terms = required_terms(affinity, problems) if required else ()
    labels = text_map(mapping(volume.get("metadata")).get("labels"))
    zones = Requirements.of(
        Requirement.of(key, *value.split(_ZONE_BORDER))
        for key, value in labels.items()
        if keys.normalize(key) == keys.ZONE
    )
    return _both(terms, (zones,) if zones else (), problems)


def _both(
    these: tuple[Requirements, ...], those: tuple[Requirements, ...], problems: list[str]
) -> tuple[Requirements, ...]:
    """Return alternatives that say what one of each says; no alternatives say nothing."""
    if not these or not those:
        return these or those
    if len(these) * len(those) > _MAX_TERMS:
        problems.append(f"its volumes leave more than {_MAX_TERMS} alternatives of node affinity")
        return these
    return tuple(dict.fromkeys(one.merge(other) for one in these for other in those))
