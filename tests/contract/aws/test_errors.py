import ast
from pathlib import Path

import pytest
from botocore import exceptions as sdk
from botocore.exceptions import ClientError
from botocore.parsers import ResponseParserError

import functions.cli
import shared.aws
from shared.aws.errors import translated
from shared.model.errors import (
    AutoscalerError,
    ConflictError,
    NotFoundError,
    PermanentError,
    ThrottledError,
    UnauthorizedError,
    UnavailableError,
)


def client_error(code: str, status: int = 400, reasons: tuple[str, ...] = ()) -> ClientError:
    response = {
        "Error": {"Code": code, "Message": "the message"},
        "ResponseMetadata": {"HTTPStatusCode": status},
        "CancellationReasons": [{"Code": reason} for reason in reasons],
    }
    return ClientError(response, "Operation")


CODES = [
    ("RequestLimitExceeded", 503, ThrottledError),
    ("Throttling", 400, ThrottledError),
    ("ThrottlingException", 400, ThrottledError),
    ("TooManyRequestsException", 429, ThrottledError),
    ("ProvisionedThroughputExceededException", 400, ThrottledError),
    ("SlowDown", 503, ThrottledError),
    ("SomethingNew", 429, ThrottledError),
    ("ConditionalCheckFailedException", 400, ConflictError),
    ("TransactionConflictException", 400, ConflictError),
    ("PreconditionFailed", 412, ConflictError),
    ("AccessDenied", 403, UnauthorizedError),
    ("AccessDeniedException", 400, UnauthorizedError),
    ("UnauthorizedOperation", 403, UnauthorizedError),
    ("ExpiredToken", 400, UnauthorizedError),
    ("NoSuchKey", 404, NotFoundError),
    ("ResourceNotFoundException", 400, NotFoundError),
    ("ParameterNotFound", 400, NotFoundError),
    ("InvalidInstanceID.NotFound", 400, NotFoundError),
    ("InvalidLaunchTemplateName.NotFoundException", 400, NotFoundError),
    ("InternalError", 500, UnavailableError),
    ("RequestTimeout", 400, UnavailableError),
    ("SomethingNew", 502, UnavailableError),
    ("SomethingNew", 400, PermanentError),
    ("", 0, PermanentError),
]


@pytest.mark.parametrize(("code", "status", "kind"), CODES)
def test_codes_say_what_an_error_is(code: str, status: int, kind: type[Exception]) -> None:
    error = client_error(code, status)
    with pytest.raises(AutoscalerError) as caught, translated("service Operation"):
        raise error
    assert type(caught.value) is kind
    assert caught.value.__cause__ is error
    assert "service Operation" in str(caught.value)


def test_the_text_of_an_error_decides_nothing() -> None:
    error = client_error("SomethingNew")
    error.response["Error"]["Message"] = "Throttling: InvalidInstanceID.NotFound AccessDenied"
    with pytest.raises(PermanentError) as caught, translated("x"):
        raise error
    assert type(caught.value) is PermanentError


@pytest.mark.parametrize(
    ("reasons", "kind"),
    [
        (("None", "ConditionalCheckFailed"), ConflictError),
        (("TransactionConflict", "None"), ConflictError),
        (("ConditionalCheckFailed", "ThrottlingError"), ThrottledError),
        (("ValidationError", "None"), PermanentError),
        ((), PermanentError),
    ],
)
def test_a_cancelled_transaction_is_what_its_reasons_say(
    reasons: tuple[str, ...], kind: type[Exception]
) -> None:
    with pytest.raises(AutoscalerError) as caught, translated("x"):
        raise client_error("TransactionCanceledException", reasons=reasons)
    assert type(caught.value) is kind


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (sdk.ReadTimeoutError(endpoint_url="e", error="x"), UnavailableError),
        (sdk.ConnectTimeoutError(endpoint_url="e", error="x"), UnavailableError),
        (sdk.EndpointConnectionError(endpoint_url="e", error="x"), UnavailableError),
        (sdk.ConnectionClosedError(endpoint_url="e", error="x"), UnavailableError),
        (sdk.SSLError(endpoint_url="e", error="x"), UnavailableError),
        (sdk.IncompleteReadError(actual_bytes=1, expected_bytes=2), UnavailableError),
        (ResponseParserError("<html>"), UnavailableError),
        (sdk.CredentialRetrievalError(provider="p", error_msg="x"), UnavailableError),
        (sdk.NoCredentialsError(), UnauthorizedError),
        (sdk.PartialCredentialsError(provider="p", cred_var="v"), UnauthorizedError),
        (sdk.ParamValidationError(report="x"), PermanentError),
        (sdk.NoRegionError(), PermanentError),
        (sdk.UnknownServiceError(service_name="x", known_service_names="y"), PermanentError),
    ],
)
def test_errors_without_an_answer_are_translated_too(
    error: Exception, kind: type[Exception]
) -> None:
    with pytest.raises(AutoscalerError) as caught, translated("x"):
        raise error
    assert type(caught.value) is kind


def sdk_errors(kind: type[Exception]) -> list[type[Exception]]:
    found = [kind]
    for subclass in kind.__subclasses__():
        found += sdk_errors(subclass)
    return found


@pytest.mark.parametrize("kind", sdk_errors(sdk.BotoCoreError), ids=lambda kind: kind.__name__)
def test_no_error_of_the_sdk_leaks(kind: type[Exception]) -> None:
    with pytest.raises(AutoscalerError), translated("x"):
        raise kind.__new__(kind)


def test_our_own_errors_and_programming_errors_pass_unchanged() -> None:
    for error in (ConflictError("x"), KeyError("x")):
        with pytest.raises(type(error)) as caught, translated("y"):
            raise error
        assert caught.value is error


CLIENTS = ("self._client(", "self._session.client(", "session.client(")


def calls_outside_translation(tree: ast.AST) -> list[int]:
    """Return lines that call a client's operation outside `with translated(...)`."""
    inside: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.With) and any(
            ast.unparse(item.context_expr).startswith("translated(") for item in node.items
        ):
            inside |= set(ast.walk(node))
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and (ast.unparse(node.func.value) + "(").startswith(CLIENTS)
        and node not in inside
    ]


def test_a_call_without_translation_is_seen() -> None:
    for call in ("self._client.get_item(Key=1)", "self._client('ec2').create_fleet()"):
        assert calls_outside_translation(ast.parse(f"def f(self):\n    {call}")) == [2]
        fine = f"def f(self):\n    with translated('x'):\n        {call}"
        assert calls_outside_translation(ast.parse(fine)) == []


ADAPTERS = sorted(
    path
    for package in (shared.aws, functions.cli)
    for path in Path(package.__path__[0]).rglob("*.py")
    if package is shared.aws or "shared.aws.session" in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("path", ADAPTERS, ids=lambda path: path.stem)
def test_every_call_is_made_where_its_errors_are_translated(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    allowed = {"_ask_for_fleet"}  # its only caller translates
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name in allowed:
            node.body = []
    assert calls_outside_translation(tree) == []
