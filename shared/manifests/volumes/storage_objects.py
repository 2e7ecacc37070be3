"""Decodes volumes, storage classes, CSINodes and VolumeAttachments.

Source: https://kubernetes.io/docs/concepts/storage/persistent-volumes/#node-affinity,
https://kubernetes.io/docs/concepts/storage/storage-classes/#allowed-topologies,
https://kubernetes.io/docs/concepts/storage/volumes/#csi-migration (2026-11).
"""

from typing import Final

from shared.manifests.affinity import required_node_terms
from shared.manifests.raw_json import (
    Raw,
    integer,
    mapping,
    mappings,
    text,
    text_map,
    texts,
    timestamp,
)
from shared.manifests.volumes.claims import class_of
from shared.model import labels as keys
from shared.model.kubernetes.volumes import (
    EBS_DRIVER,
    CsiNodeLimits,
    StorageClass,
    Volume,
    VolumeAttachment,
)
from shared.model.requirements import Requirement, Requirements

_DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_BY_HAND: Final = "kubernetes.io/no-provisioner"
# CSI drivers of volume plugins that were once built into Kubernetes.
_MIGRATED: Final = {"kubernetes.io/aws-ebs": EBS_DRIVER}
_PLACE_KEYS: Final = frozenset({keys.ZONE, keys.REGION})
# Separates the zones in the label of a volume that is in several.
_BORDER: Final = "__"


def decode_volume(raw: Raw) -> Volume:
    """Return the volume; its zone labels count like its node affinity.

    EBS volumes from before CSI count as volumes of the CSI driver, which attaches them now.
    """
    metadata, spec = mapping(raw.get("metadata")), mapping(raw.get("spec"))
    problems: list[str] = []
    required = mapping(spec.get("nodeAffinity")).get("required")
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    terms = required_node_terms(affinity, problems) if required else ()
    places = Requirements.of(
        Requirement.of(key, *value.split(_BORDER))
        for key, value in text_map(metadata.get("labels")).items()
        if keys.normalize(key) in _PLACE_KEYS
    )
    if places:
        terms = tuple(term.merge(places) for term in terms) or (places,)
    if metadata.get("deletionTimestamp") is not None:
        problems.append("it is being deleted")
    driver = text(mapping(spec.get("csi")).get("driver"))
    if spec.get("awsElasticBlockStore"):
        driver = EBS_DRIVER
    return Volume(
        name=text(metadata.get("name")),
        driver=driver,
        terms=terms,
        storage_class=class_of(metadata, spec) or "",
        is_free=not spec.get("claimRef") and mapping(raw.get("status")).get("phase") != "Failed",
        problems=tuple(problems),
    )


def decode_storage_class(raw: Raw) -> StorageClass:
    """Return the storage class."""
    metadata = mapping(raw.get("metadata"))
    made_by = text(raw.get("provisioner"))
    annotations = text_map(metadata.get("annotations"))
    return StorageClass(
        name=text(metadata.get("name")),
        driver="" if made_by == _BY_HAND else _MIGRATED.get(made_by, made_by),
        is_static=made_by == _BY_HAND,
        waits_for_first_consumer=raw.get("volumeBindingMode") == "WaitForFirstConsumer",
        terms=tuple(
            Requirements.of(
                Requirement.of(
                    text(match_label_expression.get("key")),
                    *texts(match_label_expression.get("values")),
                )
                for match_label_expression in mappings(topology.get("matchLabelExpressions"))
            )
            for topology in mappings(raw.get("allowedTopologies"))
        ),
        is_default=any(annotations.get(key) == "true" for key in _DEFAULT_CLASS),
        created_at=timestamp(metadata.get("creationTimestamp")),
    )


def decode_csi_node(raw: Raw) -> CsiNodeLimits:
    """Return the limits of a CSINode: how many volumes its node can attach."""
    counts = {}
    for driver in mappings(mapping(raw.get("spec")).get("drivers")):
        count = integer(mapping(driver.get("allocatable")).get("count"))
        if count is not None:
            counts[text(driver.get("name"))] = max(count, 0)
    return CsiNodeLimits(node_name=text(mapping(raw.get("metadata")).get("name")), counts=counts)


def decode_attachment(raw: Raw) -> VolumeAttachment:
    """Return the attachment; its volume is empty for an inline volume."""
    spec = mapping(raw.get("spec"))
    attacher = text(spec.get("attacher"))
    return VolumeAttachment(
        node_name=text(spec.get("nodeName")),
        driver=_MIGRATED.get(attacher, attacher),
        volume=text(mapping(spec.get("source")).get("persistentVolumeName")),
    )
