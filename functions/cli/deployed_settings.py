"""The settings that the functions of the deployed control plane have, for a user's own process."""

from collections.abc import Mapping
from typing import Final

from shared.aws.errors import translated
from shared.aws.session import Session
from shared.model.errors import NotFoundError, UnauthorizedError
from shared.runtime.system import environment, region
from shared.settings import PREFIX, FunctionSettings, RefreshCatalogSettings

_SETTINGS_SOURCE: Final = "dovetail-sweep"
_CATALOG_SOURCE: Final = "dovetail-refresh-catalog"


def function_settings(variables: Mapping[str, str] | None = None) -> FunctionSettings:
    """Return the settings that the environment (by default the process's own) describes.

    An environment without any of Dovetail's variables is filled with those of a deployed function,
    so that users need not copy them.

    Raises:
        SettingsError: If a variable is missing or wrong.
        NotFoundError: If there is no control plane in the Region.
    """
    found = environment() if variables is None else variables
    names = FunctionSettings.__struct_fields__
    if not any(f"{PREFIX}{name.upper()}" in found for name in names):
        found = _deployed()
    return FunctionSettings.from_environment(found)


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


def _deployed() -> Mapping[str, str]:
    try:
        return function_variables(Session(region=region()), _SETTINGS_SOURCE)
    except NotFoundError as error:
        raise NotFoundError(
            f"no function {_SETTINGS_SOURCE} in {region()}: "
            "set AWS_REGION to where the control plane is, "
            "or deploy it"
        ) from error


def catalog_settings(session: Session) -> RefreshCatalogSettings | None:
    """Return the settings of the catalogue in the session's Region.

    None where there is no control plane, or the caller may not read its function.

    Raises:
        SettingsError: If a variable of the function is wrong.
    """
    try:
        variables = function_variables(session, _CATALOG_SOURCE)
    except (NotFoundError, UnauthorizedError):
        return None
    return RefreshCatalogSettings.from_environment(variables)
