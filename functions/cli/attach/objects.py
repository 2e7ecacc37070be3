"""Objects of one cluster of any kind, as documents: what an installation needs."""

from dataclasses import dataclass
from typing import Protocol, Self

from shared.manifests.raw_json import Raw, mapping, text


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ObjectKey:
    """The key of one object.

    Attributes:
        namespace: Empty for an object of the whole cluster.
    """

    api_version: str
    kind: str
    namespace: str = ""
    name: str

    @classmethod
    def of(cls, document: Raw) -> Self:
        """Return the key of a document."""
        metadata = mapping(document.get("metadata"))
        return cls(
            api_version=text(document.get("apiVersion")),
            kind=text(document.get("kind")),
            namespace=text(metadata.get("namespace")),
            name=text(metadata.get("name")),
        )

    def __str__(self) -> str:
        """Return kind, namespace and name as people write them."""
        return f"{self.kind} {f'{self.namespace}/' if self.namespace else ''}{self.name}"


class Objects(Protocol):
    """Reads and writes objects of one cluster with the caller's permissions."""

    def find(self, key: ObjectKey) -> Raw | None:
        """Return an object, None when there is none."""
        ...

    def apply(self, document: Raw, *, dry_run: bool = False) -> Raw:
        """Apply the document to the object (server-side apply); return the object.

        Args:
            dry_run: Whether the server only returns what the object would be.

        Raises:
            RejectedError: The server does not accept the document.
        """
        ...

    def delete(self, key: ObjectKey) -> None:
        """Delete an object if it exists and, in the background, what it owns."""
        ...

    def defined_by(self, definition: Raw) -> tuple[str, ...]:
        """Return the names of the objects of a CustomResourceDefinition's kind, sorted."""
        ...

    def pods(self, namespace: str) -> tuple[Raw, ...]:
        """Return the pods of a namespace, sorted by name."""
        ...

    def content(self, namespace: str) -> tuple[Raw, ...]:
        """Return all objects of a namespace, of every kind that is served, with their kinds.

        Raises:
            UnavailableError: The server announces a kind that cannot be listed.
        """
        ...
