"""Events have two API versions with different field names; they are stored in the core form."""

from infra.local.kube.errors import JsonObject
from infra.local.kube.kinds import Resource

_NAMES = (
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
)
"""Field of events.k8s.io/v1, and of v1."""


def is_converted(resource: Resource) -> bool:
    """Whether objects of this resource are stored in another form than they are served in."""
    return resource.group == "events.k8s.io"


def to_stored(obj: JsonObject) -> None:
    """Rename the fields of an events.k8s.io event to those of a core event, in place."""
    for served, stored in _NAMES:
        if served in obj:
            obj[stored] = obj.pop(served)


def to_served(obj: JsonObject) -> JsonObject:
    """Return an event in the form of events.k8s.io."""
    names = {stored: served for served, stored in _NAMES}
    return {names.get(key, key): value for key, value in obj.items()}
