"""Translates errors of the SDK to Dovetail's errors, by code, never by text.

Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html,
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html and the
throttling codes of botocore's standard retry mode (2026-08).
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    PartialCredentialsError,
)
from botocore.exceptions import ConnectionError as SdkConnectionError
from botocore.parsers import ResponseParserError

from shared.model.errors import (
    AutoscalerError,
    ConflictError,
    NotFoundError,
    PermanentError,
    ThrottledError,
    UnauthorizedError,
    UnavailableError,
)

_THROTTLED: Final = frozenset(
    {
        "BandwidthLimitExceeded",
        "EC2ThrottledException",
        "LimitExceededException",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingError",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
_CONFLICT: Final = frozenset(
    {
        "ConditionalCheckFailed",
        "ConditionalCheckFailedException",
        "ConditionalRequestConflict",
        "OperationAborted",
        "PreconditionFailed",
        "ReplicatedWriteConflictException",
        "TransactionConflict",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)
_UNAUTHORIZED: Final = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "AuthFailure",
        "Blocked",
        "ExpiredToken",
        "ExpiredTokenException",
        "Forbidden",
        "IncompleteSignature",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "MissingAuthenticationTokenException",
        "OptInRequired",
        "PendingVerification",
        "RequestExpired",
        "SignatureDoesNotMatch",
        "UnauthorizedOperation",
        "UnrecognizedClientException",
    }
)
_NOT_FOUND: Final = frozenset(
    {
        "404",
        "AWS.SimpleQueueService.NonExistentQueue",
        "NoSuchBucket",
        "NoSuchEntity",
        "NoSuchKey",
        "NotFoundException",
        "ParameterNotFound",
        "QueueDoesNotExist",
        "ResourceNotFoundException",
        "StateMachineDoesNotExist",
    }
)
_NOT_FOUND_ENDINGS: Final = (".NotFound", ".NotFoundException")
_UNAVAILABLE: Final = frozenset(
    {
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "RequestTimeout",
        "RequestTimeoutException",
        "ServerInternal",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "Unavailable",
    }
)
# The first of these sets that has any reason of a cancelled transaction decides the error.
_REASONS: Final = ((_THROTTLED, ThrottledError), (_CONFLICT, ConflictError))


def error_code(error: ClientError) -> str:
    """Return the error code, empty when the answer had none."""
    return str(error.response.get("Error", {}).get("Code", ""))


def cancellation_reasons(error: ClientError) -> tuple[str, ...]:
    """Return why a transaction was cancelled: a code for each item, `None` if it did not fail."""
    rows: list[Mapping[str, Any]] = error.response.get("CancellationReasons", [])
    return tuple(str(row.get("Code", "None")) for row in rows)


@contextmanager
def translated(action: str) -> Iterator[None]:
    """Raise one of Dovetail's errors for every error of the SDK.

    Args:
        action: The service and operation, such as `ec2 CreateFleet`.

    Raises:
        ThrottledError: The service throttled the call; nothing happened.
        ConflictError: A condition did not hold.
        UnavailableError: Time-out, no connection, or a server error: the outcome is unknown.
        UnauthorizedError: The credentials do not allow it.
        NotFoundError: The named resource does not exist.
        PermanentError: Anything else.
    """
    try:
        yield
    except ClientError as error:
        raise _of_client_error(error, action) from error
    except (HTTPClientError, SdkConnectionError, IncompleteReadError) as error:
        raise UnavailableError(f"{action}: {type(error).__name__}: {error}") from error
    except ResponseParserError as error:
        # The service did not answer, but a proxy, or a server error as a page.
        raise UnavailableError(f"{action}: the answer cannot be read") from error
    except (NoCredentialsError, PartialCredentialsError) as error:
        text = f"{action}: {error}; log in, or set AWS_PROFILE or AWS_ACCESS_KEY_ID"
        raise UnauthorizedError(text) from error
    except CredentialRetrievalError as error:
        raise UnavailableError(f"{action}: {error}") from error
    except BotoCoreError as error:
        raise PermanentError(f"{action}: {type(error).__name__}: {error}") from error


def _of_client_error(error: ClientError, action: str) -> AutoscalerError:
    code = error_code(error)
    detail = str(error.response.get("Error", {}).get("Message", ""))
    text = f"{action}: {code}: {detail}"
    if code == "TransactionCanceledException":
        reasons = frozenset(cancellation_reasons(error))
        for codes, kind in _REASONS:
            if reasons & codes:
                return kind(f"{text} ({', '.join(sorted(reasons))})")
        return PermanentError(text)
    if code in _THROTTLED:
        return ThrottledError(text)
    if code in _CONFLICT:
        return ConflictError(text)
    if code in _UNAUTHORIZED:
        return UnauthorizedError(text, code=code, detail=detail)
    if code in _NOT_FOUND or code.endswith(_NOT_FOUND_ENDINGS):
        return NotFoundError(text, code=code, detail=detail)
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    if code in _UNAVAILABLE or status >= 500:
        return UnavailableError(text)
    if status == 429:
        return ThrottledError(text)
    return PermanentError(text, code=code, detail=detail)
