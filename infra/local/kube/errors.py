"""Refusals of the API server, each with the `Status` body a client may branch on."""

from collections.abc import Sequence
from typing import Any

JsonObject = dict[str, Any]
Cause = tuple[str, str, str]
"""(reason, message, field) of one complaint inside an Invalid or Conflict status."""


class ApiError(Exception):
    """A request that is refused.

    Args:
        reason: Machine-readable reason, such as `NotFound`.
        metadata: `metadata` of the Status (a fresh continue token, for instance).
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: JsonObject | None = None,
        metadata: JsonObject | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.metadata = metadata

    def status(self) -> JsonObject:
        body: JsonObject = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata or {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if self.details:
            body["details"] = self.details
        return body | {"code": self.code}


def success(name: str, group: str, plural: str, uid: str = "") -> JsonObject:
    """Return the `Status` that answers a completed delete, binding or eviction."""
    details = {"name": name, "group": group, "kind": plural, "uid": uid}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {key: value for key, value in details.items() if value},
    }


def _qualified(group: str, plural: str) -> str:
    return f"{plural}.{group}" if group else plural


def _details(group: str, plural: str, name: str, causes: Sequence[Cause] = ()) -> JsonObject:
    details: JsonObject = {"name": name, "group": group, "kind": plural}
    if causes:
        details["causes"] = [
            {"reason": reason, "message": message} | ({"field": field} if field else {})
            for reason, message, field in causes
        ]
    return {key: value for key, value in details.items() if value}


def not_found(group: str, plural: str, name: str) -> ApiError:
    """The object does not exist."""
    message = f'{_qualified(group, plural)} "{name}" not found'
    return ApiError(404, "NotFound", message, details=_details(group, plural, name))


def no_such_path() -> ApiError:
    """Nothing is served under this path."""
    message = "the server could not find the requested resource"
    return ApiError(404, "NotFound", message, details={})


def already_exists(group: str, plural: str, name: str) -> ApiError:
    """An object of this name is there already."""
    message = f'{_qualified(group, plural)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, details=_details(group, plural, name))


def conflict(
    group: str, plural: str, name: str, why: str, causes: Sequence[Cause] = ()
) -> ApiError:
    """The write was made against another state of the object."""
    message = f'Operation cannot be fulfilled on {_qualified(group, plural)} "{name}": {why}'
    return ApiError(409, "Conflict", message, details=_details(group, plural, name, causes))


def invalid(group: str, kind: str, name: str, causes: Sequence[Cause]) -> ApiError:
    """The object breaks rules of its kind; one cause for each."""
    listed = [f"{field}: {message}" if field else message for _, message, field in causes]
    text = listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]"
    message = f'{_qualified(group, kind)} "{name}" is invalid: {text}'
    return ApiError(422, "Invalid", message, details=_details(group, kind, name, causes))


def bad_request(message: str) -> ApiError:
    """The request cannot be understood."""
    return ApiError(400, "BadRequest", message)


def forbidden(
    group: str, plural: str, name: str, why: str, causes: Sequence[Cause] = ()
) -> ApiError:
    """Admission refuses the request."""
    message = f'{_qualified(group, plural)} "{name}" is forbidden: {why}'
    return ApiError(403, "Forbidden", message, details=_details(group, plural, name, causes))


def expired(message: str, metadata: JsonObject | None = None) -> ApiError:
    """The resourceVersion or continue token is older than what is kept."""
    return ApiError(410, "Expired", message, metadata=metadata)
