"""The whole error tree of the product.

AutoscalerError
├── RetryableError          the same call may succeed later; may carry a delay
│   ├── ThrottledError      the service throttled the call
│   ├── ConflictError       another writer was first (resourceVersion, condition, token)
│   ├── UnavailableError    time-out, connection refused, 5xx
│   └── EvictionRefusedError  a PodDisruptionBudget forbids it for now
└── PermanentError          repeating changes nothing
    ├── InvalidMessageError   a record that cannot be understood
    ├── InvalidManifestError  a Kubernetes document with a wrong field
    ├── NotAdmittedError      a pod that the API server would refuse
    ├── UnauthorizedError     the credentials do not allow it
    ├── CertificateError      the server's certificate is not valid for it
    └── NotFoundError         the thing named does not exist
        ├── NotAttachedError    no cluster of that name is attached to this control plane
        └── NotInstalledError   the cluster defines neither Provisioners nor NodePools
"""

from datetime import timedelta
from typing import Final


class AutoscalerError(Exception):
    """Anything Dovetail raises on purpose."""


class RetryableError(AutoscalerError):
    """The same call may succeed later; `delay` says how long to wait at least, if known."""

    def __init__(self, message: str, *, delay: timedelta | None = None) -> None:
        super().__init__(message)
        self.delay = delay


class ThrottledError(RetryableError):
    """The service throttled the call."""


class ConflictError(RetryableError):
    """Another writer was first: a resourceVersion, a condition or a token did not match."""


class UnavailableError(RetryableError):
    """A time-out, a refused connection or a server error: the outcome may be unknown."""


class EvictionRefusedError(RetryableError):
    """A PodDisruptionBudget forbids the eviction for now."""


class PermanentError(AutoscalerError):
    """Repeating the call changes nothing.

    Args:
        code: The error code of the AWS service that refused the call; empty for other errors.
        detail: The service's own text, without what was tried.
    """

    def __init__(self, message: str = "", *, code: str = "", detail: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.detail = detail


class InvalidMessageError(PermanentError):
    """A queue or bus record that cannot be understood."""


_SHOWN: Final = 200


def fault_line(field: str, value: object, remedy: str) -> str:
    """Return what is wrong with a field in one line; the value is shortened and escaped."""
    shown = repr(value)
    if len(shown) > _SHOWN:
        shown = f"{shown[:_SHOWN]}…"
    line = f"{field[:_SHOWN]}: {shown}: {remedy}"
    return line if line.isprintable() else repr(line)[1:-1]


class InvalidManifestError(PermanentError):
    """A Kubernetes document with a wrong field.

    Args:
        field: Path of the field, as in `spec.requirements[0].operator`.
        value: Its value.
        remedy: What to write instead.
    """

    def __init__(self, *, field: str, value: object, remedy: str) -> None:
        super().__init__(fault_line(field, value, remedy))
        self.field = field
        self.value = value
        self.remedy = remedy


class NotAdmittedError(PermanentError):
    """A pod that the API server would refuse; `str()` says why, for people."""


class UnauthorizedError(PermanentError):
    """The credentials do not allow the call."""


class CertificateError(PermanentError):
    """A server's certificate has expired, names another host, or has another authority."""


class NotFoundError(PermanentError):
    """The thing named does not exist (any more)."""


class NotAttachedError(NotFoundError):
    """No cluster of that name is attached to this control plane."""


class NotInstalledError(NotFoundError):
    """The cluster has neither the CRD of Provisioners nor that of NodePools."""
