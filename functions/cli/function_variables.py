"""The environment variables of a Lambda function, for commands that run a function's code."""

from collections.abc import Mapping

from shared.aws.errors import translated
from shared.aws.session import Session


def function_variables(session: Session, name: str) -> Mapping[str, str]:
    """Return a function's environment variables; changes nothing.

    Raises:
        NotFoundError: If there is no such function in the session's Region.
        UnauthorizedError: If the caller may not read it.
    """
    with translated("lambda GetFunctionConfiguration"):
        found = session.client("lambda").get_function_configuration(FunctionName=name)
    variables: Mapping[str, str] = found.get("Environment", {}).get("Variables", {})
    return variables
