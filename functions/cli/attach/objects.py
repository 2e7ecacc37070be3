"""The keys of objects of one cluster, of any kind."""

from typing import Self

from msgspec import Struct

from shared.manifests.raw_json import Raw, mapping, text


class ObjectKey(Struct, frozen=True, kw_only=True, order=True):
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
