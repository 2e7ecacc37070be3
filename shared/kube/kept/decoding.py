"""The fields of pods and nodes that are read: the rest of a page is skipped, not decoded.

Most of a pod is environment, mounts and managed fields. Decoding a whole page takes 52 µs a pod of
6 kB with `json`, 38 with pydantic, which parses all of it before it applies its schema, and 8 with
msgspec, which skips fields that its types do not name.

The types name fields, never their types: `shared.manifests` reads the values, as those of any
manifest. A page with an object of another structure is decoded as a whole.
"""

import json
from typing import Any, Final

from msgspec import DecodeError
from msgspec.json import Decoder
from typing_extensions import TypedDict

from shared.kube.api import Decode
from shared.manifests.files import fields_read as read


def _named(name: str, plain: tuple[str, ...], **typed: Any) -> Any:
    """Return the type of an object with these fields, all of them optional."""
    return TypedDict(name, {**dict.fromkeys(plain, Any), **typed}, total=False)  # type: ignore[operator]


def _maybe(kind: Any) -> Any:
    return list[kind] | None


_Metadata: Final = _named("_Metadata", read.METADATA_FIELDS)
_Conditions: Final = _maybe(_named("_Condition", read.CONDITION_FIELDS))
_Containers: Final = _maybe(_named("_Container", read.CONTAINER_FIELDS))
_ContainerStatuses: Final = _maybe(_named("_ContainerStatus", read.CONTAINER_STATUS_FIELDS))
_Pod: Final = _named(
    "_Pod",
    (),
    metadata=_Metadata,
    spec=_named(
        "_PodSpec",
        read.POD_SPEC_FIELDS,
        containers=_Containers,
        initContainers=_Containers,
        volumes=_maybe(_named("_Volume", read.VOLUME_FIELDS)),
    ),
    status=_named(
        "_PodStatus",
        read.POD_STATUS_FIELDS,
        conditions=_Conditions,
        containerStatuses=_ContainerStatuses,
        initContainerStatuses=_ContainerStatuses,
    ),
)
_Node: Final = _named(
    "_Node",
    (),
    metadata=_Metadata,
    spec=_named("_NodeSpec", ("providerID", "taints", "unschedulable")),
    status=_named("_NodeStatus", read.NODE_STATUS_FIELDS, conditions=_Conditions),
)


def _page_of(kind: Any) -> Decode:
    page = _named("_Page", ("kind", "message"), metadata=Any, items=list[kind])
    return _lenient(Decoder(page))


def _lenient(typed: "Decoder[Any]") -> Decode:
    """Return a decoder that decodes all fields of a text that does not match the types.

    Raises:
        ValueError, RecursionError: As `json.loads`.
    """

    def decode(text: bytes) -> Any:
        try:
            return typed.decode(text)
        except (DecodeError, UnicodeDecodeError):
            return json.loads(text)

    return decode


POD_PAGE_DECODER: Final = _page_of(_Pod)
NODE_PAGE_DECODER: Final = _page_of(_Node)
