"""Resolves the AMI that each instance type boots."""

from collections.abc import Iterable, Sequence
from typing import Final

from shared.instance_types.ami_families import ImageRequest, family_of
from shared.model import labels as keys
from shared.model.dialect import V1ALPHA5, Dialect
from shared.model.ec2.image_table import ImageTable
from shared.model.ec2.instance_types import InstanceType
from shared.model.provisioner import NodeTemplate
from shared.model.values import replace
from shared.ports import CloudProvider, MachineImage

# Labels of instance types with accelerators, which decide what drivers an image needs.
ACCELERATORS: Final = (keys.INSTANCE_ACCELERATOR_COUNT, keys.INSTANCE_GPU_COUNT)
_SELECTED: Final = "selected"


def no_image(dialect: Dialect) -> str:
    """Return the message that there is no image for a Provisioner's instances."""
    return (
        f"no image is found: {dialect.selectors.images} finds none, or the family has none for us"
    )


def resolve_images(
    cloud: CloudProvider,
    template: NodeTemplate,
    version: str,
    instance_types: Sequence[InstanceType],
    dialect: Dialect = V1ALPHA5,
) -> ImageTable:
    """Return the newest images of a Provisioner's instances.

    If the template names a launch template, which contains its own image, the table is empty.

    Args:
        version: The Kubernetes version of the cluster, for example `1.33`.
        dialect: The dialect of the Provisioner.

    Raises:
        PermanentError: If the AMI family does not exist.
    """
    if template.launch_template:
        return ImageTable()
    if template.ami_selector:
        found = cloud.find_images(template.ami_selector)
        return selected_images((as_read(image, dialect) for image in found), instance_types)
    family = family_of(template.image_family or template.ami_family)
    parameter = family.parameter
    if parameter is None:
        return ImageTable()
    kinds = {
        instance_type.name: parameter(
            ImageRequest(
                version=version,
                architecture=instance_type.labels[keys.ARCH],
                capacity=instance_type.capacity,
                release=template.image_version,
            )
        )
        for instance_type in instance_types
        if instance_type.labels.get(keys.INSTANCE_FAMILY) not in family.unsupported_families
    }
    return ImageTable(kinds=kinds, ids=cloud.image_ids(sorted(set(kinds.values()))))


def accelerators_of_images(
    template: NodeTemplate, table: ImageTable, instance_types: Iterable[InstanceType]
) -> dict[str, set[tuple[str, ...]]]:
    """Return, by AMI ID, which of ACCELERATORS the instance types of a recommended image have.

    An image may serve several sets: Bottlerocket's standard image is for instances without
    accelerators and for those with Neuron devices. Empty if images are selected by tags, or if the
    family has no separate images for accelerators.

    Source: https://github.com/aws/karpenter-provider-aws/blob/v1.14.1/pkg/providers/amifamily/
    types.go (Variant.Requirements), 2026-11.
    """
    family = family_of(template.image_family or template.ami_family)
    found: dict[str, set[tuple[str, ...]]] = {}
    if template.ami_selector or not family.has_accelerator_images:
        return found
    for instance_type in instance_types:
        if image := table.of(instance_type.name):
            has = tuple(key for key in ACCELERATORS if key in instance_type.labels)
            found.setdefault(image, set()).add(has)
    return found


def selected_images(
    images: Iterable[MachineImage], instance_types: Iterable[InstanceType]
) -> ImageTable:
    """Return the newest image that each instance type can boot.

    An image is for the instance types of its architecture and, if it has tags that are well-known
    labels, for those with the same values. A deprecated image comes after all others; of images of
    the same age the first by name is used, then by ID.
    """
    ordered = sorted(images, key=lambda image: (image.name, image.image_id))
    ordered.sort(key=lambda image: (not image.deprecated, image.created_at), reverse=True)
    newest: dict[str, MachineImage] = {}
    for image in ordered:
        newest.setdefault(_kind(image), image)
    kinds = {}
    for instance_type in instance_types:
        fitting = next((image for image in newest.values() if _boots(image, instance_type)), None)
        if fitting is not None:
            kinds[instance_type.name] = _kind(fitting)
    used = set(kinds.values())
    return ImageTable(
        kinds=kinds,
        ids={kind: image.image_id for kind, image in sorted(newest.items()) if kind in used},
    )


def as_read(image: MachineImage, dialect: Dialect) -> MachineImage:
    """Return an image, without its tags unless the dialect reads them as labels.

    Source: https://github.com/aws/karpenter-provider-aws/blob/v1.14.1/pkg/providers/amifamily/
    types.go (RequirementsForImageWithArchitecture), 2026-11.
    """
    return image if dialect.image_tags_are_labels else replace(image, tags={})


def demanded_labels(image: MachineImage) -> dict[str, str]:
    """Return the labels that an image is for: its architecture and its tags that are well-known."""
    tagged = {
        key: value
        for key, value in sorted(image.tags.items())
        if key in keys.WELL_KNOWN and key not in keys.OWNER_LABELS
    }
    return {**tagged, keys.ARCH: image.architecture}


def _kind(image: MachineImage) -> str:
    demanded = demanded_labels(image)
    tagged = (f"{key}={demanded[key]}" for key in sorted(demanded) if key != keys.ARCH)
    return ",".join((f"{_SELECTED}:{image.architecture}", *tagged))


def _boots(image: MachineImage, instance_type: InstanceType) -> bool:
    labels = instance_type.labels
    return all(labels.get(key) == value for key, value in demanded_labels(image).items())
