"""The variables of a function as Lambda has them, for people who run what functions run."""

from collections.abc import Mapping

from shared.aws.errors import translated
from shared.aws.session import Session


def function_variables(session: Session, name: str) -> Mapping[str, str]:
    """Return a function's variables; nothing of it is changed.

    Raises:
        NotFoundError: If there is no such function in the session's Region.
        UnauthorizedError: If the caller may not read it.
    """
    with translated("lambda GetFunctionConfiguration"):
        found = session.client("lambda").get_function_configuration(FunctionName=name)
    variables: Mapping[str, str] = found.get("Environment", {}).get("Variables", {})
    return variables
