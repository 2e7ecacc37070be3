"""Changes the tags of a cluster's instances under the role for migrations."""

from collections.abc import Mapping, Sequence
from typing import Any

from shared.aws.errors import translated
from shared.aws.session import Session


class Ec2InstanceTags:
    """Implements functions.cli.migrate.karpenter.InstanceTags.

    Args:
        session: Session in the cluster's Region.
        role: ARN of the cluster's role for migrations.
    """

    def __init__(self, session: Session, *, role: str) -> None:
        self._session = session
        self._role = role

    def tag(self, instance_id: str, tags: Mapping[str, str]) -> None:
        """Add tags to an instance, or replace their values."""
        listed = [{"Key": key, "Value": value} for key, value in sorted(tags.items())]
        with translated("ec2 CreateTags"):
            self._client.create_tags(Resources=[instance_id], Tags=listed)

    def untag(self, instance_id: str, tag_keys: Sequence[str]) -> None:
        """Remove tags from an instance, whatever their values; missing tags are ignored."""
        listed = [{"Key": key} for key in sorted(tag_keys)]
        with translated("ec2 DeleteTags"):
            self._client.delete_tags(Resources=[instance_id], Tags=listed)

    @property
    def _client(self) -> Any:
        return self._session.client("ec2", role=self._role)
