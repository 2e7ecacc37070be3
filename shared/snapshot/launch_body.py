"""The body of a launch intent: everything that a later invocation needs to finish the launch.

It is written once, before EC2 is called; a replay sends these exact bytes.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from shared.model.codec import from_plain, to_json
from shared.model.ec2.instance_types import OfferingKey
from shared.model.ec2.launches import LaunchOption, PodRef, SlotOwner
from shared.model.errors import PermanentError
from shared.model.resources import Resources

_VERSION: Final = 2


class PromisedSlot(Struct, frozen=True, kw_only=True):
    """A planned node of the launch, with the pods nominated to it."""

    number: int
    pods: tuple[PodRef, ...]
    daemon_requests: Resources


class LaunchAttempt(Struct, frozen=True, kw_only=True):
    """One attempt to launch the nodes of a group.

    Attributes:
        number: From 0; incremented if EC2 did not launch all that was requested.
        labels: The labels that the Provisioner gives the nodes.
        slots: The slots that still have no instance.
        options: What this attempt requests, of one capacity type.
        fallback: What is requested if none of `options` is available.
        replaces: Names of the nodes that they will replace, separated by commas.
        stamp: Annotations for their Nodes that record what they were launched for: the Provisioner
            may have changed by the time the Nodes are created.
        owner: The owner that they are launched for.
    """

    cluster: str
    plan_id: str
    group: int
    number: int
    provisioner: str
    labels: Mapping[str, str]
    slots: tuple[PromisedSlot, ...]
    options: tuple[LaunchOption, ...]
    fallback: tuple[LaunchOption, ...] = ()
    replaces: str = ""
    stamp: Mapping[str, str]
    owner: SlotOwner

    @property
    def offerings(self) -> frozenset[OfferingKey]:
        """The offerings that this attempt requests."""
        return frozenset(option.offering for option in self.options)

    @property
    def key(self) -> str:
        """The key of the attempt's body, which expires before decisions: it contains user data."""
        return f"launches/{self.cluster}/{self.plan_id}/{self.group}-{self.number}.json"


class LaunchBody(Struct, frozen=True, kw_only=True):
    """An attempt and the exact requests that it makes.

    Attributes:
        templates: From launch template name to its data.
        request: The exact CreateFleet request.
    """

    attempt: LaunchAttempt
    templates: Mapping[str, Any]
    request: Mapping[str, Any]

    @property
    def is_plain(self) -> bool:
        """Whether the request has no launch template and no context of the user's."""
        return bool(self.templates) and "Context" not in self.request

    def to_bytes(self) -> bytes:
        """Return the canonical JSON of the body."""
        return to_json(
            {
                "version": _VERSION,
                "attempt": self.attempt,
                "templates": self.templates,
                "request": self.request,
            }
        )

    @classmethod
    def from_bytes(cls, text: bytes) -> "LaunchBody":
        """Return the body that `to_bytes` wrote.

        Raises:
            PermanentError: If it is not a body, or of another version.
        """
        try:
            document = json.loads(text)
            version = document["version"]
            if version != _VERSION:
                raise PermanentError(f"launch body of version {version}: this reads {_VERSION}")
            return from_plain(cls, document)
        except (ValueError, LookupError, TypeError) as error:
            raise PermanentError(f"launch body cannot be read: {error!r}") from error

    def sha256(self) -> str:
        """Return the SHA-256 of the body in hexadecimal."""
        return hashlib.sha256(self.to_bytes()).hexdigest()
