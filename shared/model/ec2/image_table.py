"""The AMI that each instance type boots."""

from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from shared.model.ec2.instance_types import InstanceType


class ImageTable(Struct, frozen=True, kw_only=True):
    """The images of one Provisioner, by instance type.

    Attributes:
        kinds: From instance type to image kind: the SSM parameter that names the image or, for
            images selected by tags, the architecture and the labels that the image is for.
        ids: From image kind to AMI ID.
    """

    kinds: Mapping[str, str] = field(default_factory=dict)
    ids: Mapping[str, str] = field(default_factory=dict)

    def of(self, instance_type: str) -> str | None:
        """Return the AMI ID of an instance type, None if there is no image for it."""
        return self.ids.get(self.kinds.get(instance_type, ""))

    def lacks(self, instance_types: Iterable[InstanceType]) -> frozenset[str]:
        """Return the instance types without an image; empty if there is no image at all."""
        if not self.ids:
            return frozenset()
        return frozenset(
            instance_type.name
            for instance_type in instance_types
            if self.of(instance_type.name) is None
        )

    def with_ids(self, changes: Mapping[str, str]) -> "ImageTable":
        """Return the table with other image IDs for some of its kinds."""
        known = {kind: change for kind, change in changes.items() if kind in self.ids}
        return ImageTable(kinds=self.kinds, ids={**self.ids, **known})
