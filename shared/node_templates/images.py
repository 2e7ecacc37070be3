"""The image that each instance type boots, and the taints that a machine starts with."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from shared.ami_families import ImageRequest, family_of
from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.provisioner import NodeTemplate, Provisioner
from shared.ports import CloudProvider, MachineImage

# Labels of machines with accelerators: what an image has drivers for depends on them.
ACCELERATORS: Final = (keys.INSTANCE_ACCELERATOR_COUNT, keys.INSTANCE_GPU_COUNT)
_SELECTED: Final = "selected"
_UNINITIALIZED: Final = Taint(
    key=keys.CLOUD_UNINITIALIZED_TAINT, value="true", effect=Effect.NO_SCHEDULE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageTable:
    """The images of one Provisioner, by the kind of machine that boots them.

    Attributes:
        kinds: Instance type to image kind: the SSM parameter that names the image, or, of images
            chosen by tags, their architecture and the labels they are for.
        ids: Image kind to AMI id.
    """

    kinds: Mapping[str, str] = field(default_factory=dict, hash=False)
    ids: Mapping[str, str] = field(default_factory=dict, hash=False)

    def of(self, instance_type: str) -> str | None:
        """Return the AMI id that machines of a type boot, None when there is no image for them."""
        return self.ids.get(self.kinds.get(instance_type, ""))

    def with_ids(self, changes: Mapping[str, str]) -> "ImageTable":
        """Return the table with other images for some of its kinds."""
        known = {kind: change for kind, change in changes.items() if kind in self.ids}
        return ImageTable(kinds=self.kinds, ids={**self.ids, **known})


def resolve_images(
    cloud: CloudProvider,
    template: NodeTemplate,
    version: str,
    instance_types: Sequence[InstanceType],
) -> ImageTable:
    """Return the newest images a Provisioner's machines boot.

    A launch template of the user's own has its image in it: the table is empty.

    Args:
        version: Of the cluster, as `1.33`.

    Raises:
        PermanentError: If the family is none that there is.
    """
    if template.launch_template:
        return ImageTable()
    if template.ami_selector:
        return selected_images(cloud.find_images(template.ami_selector), instance_types)
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
        if instance_type.labels.get(keys.INSTANCE_FAMILY) not in family.lacks
    }
    return ImageTable(kinds=kinds, ids=cloud.image_ids(sorted(set(kinds.values()))))


def accelerators_of_images(
    template: NodeTemplate, table: ImageTable, instance_types: Iterable[InstanceType]
) -> dict[str, set[tuple[str, ...]]]:
    """Return, by AMI id, which of ACCELERATORS the machines have that boot a recommended image.

    An image may be for several kinds of machines: Bottlerocket's own is for those without
    accelerators and for those with Neuron devices. Empty where images are chosen by tags, or where
    the family has none of their own for accelerators.

    Source: https://github.com/aws/karpenter-provider-aws/blob/v1.14.1/pkg/providers/amifamily/
    types.go (Variant.Requirements), 2026-11.
    """
    family = family_of(template.image_family or template.ami_family)
    found: dict[str, set[tuple[str, ...]]] = {}
    if template.ami_selector or not family.by_accelerators:
        return found
    for instance_type in instance_types:
        if image := table.of(instance_type.name):
            has = tuple(key for key in ACCELERATORS if key in instance_type.labels)
            found.setdefault(image, set()).add(has)
    return found


def selected_images(
    images: Iterable[MachineImage], instance_types: Iterable[InstanceType]
) -> ImageTable:
    """Return for each instance type the newest image that it can boot.

    An image is for the machines of its architecture and, when it has tags that are well-known
    labels, for those that answer them so. One that is deprecated comes after all others; of two of
    the same age the first by name is taken, then by id.
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


def kubelet_taints(provisioner: Provisioner) -> tuple[Taint, ...]:
    """Return the taints that user data asks the kubelet to register its Node with, sorted.

    The taint of an external cloud provider is left out, also where the user names it: the kubelet
    adds it by itself, and the API server refuses a Node that carries it twice.

    Source: https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/kubelet/kubelet_node_status.go
    (initialNode) and .../pkg/apis/core/validation/validation.go (validateNodeTaints), 2026-11-22.
    """
    return _unique((*_asked(provisioner), provisioner.dialect.registering_taint))


def node_taints(provisioner: Provisioner) -> tuple[Taint, ...]:
    """Return the taints of the Node object that is made for a machine, sorted.

    Those of the kubelet, and the one that asks the cloud controller to initialize the node.
    """
    closing = provisioner.dialect.closing_taint
    return _unique((*_asked(provisioner), closing, _UNINITIALIZED))


def _asked(provisioner: Provisioner) -> tuple[Taint, ...]:
    wanted = (*provisioner.taints, *provisioner.startup_taints)
    return tuple(taint for taint in wanted if taint.key != keys.CLOUD_UNINITIALIZED_TAINT)


def _unique(taints: Iterable[Taint]) -> tuple[Taint, ...]:
    """Return the taints, sorted; of several with the same key and effect the first."""
    found: dict[tuple[str, Effect], Taint] = {}
    for taint in taints:
        found.setdefault((taint.key, taint.effect), taint)
    return tuple(sorted(found.values()))


def demanded_labels(image: MachineImage) -> dict[str, str]:
    """Return the labels an image is for: its architecture, and its tags that are such labels."""
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
