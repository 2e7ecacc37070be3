"""The environment variables of the functions, from the models that read them there."""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import fields

from infra.aws.config import ConfigError
from shared.settings import PREFIX, FunctionSettings, SettingsError

# Values that satisfy the models' patterns while the real ones are unresolved CDK tokens.
_SAMPLES: Final[Mapping[str, str]] = {
    "table": "sample-table",
    "bucket": "sample-bucket",
    "queue_url": "https://sqs.sample/1/sample",
    "dead_letter_url": "https://sqs.sample/1/sample",
    "emptiness_machine": "arn:aws:states:sample",
    "expiration_machine": "arn:aws:states:sample",
    "registration_machine": "arn:aws:states:sample",
    "replacement_machine": "arn:aws:states:sample",
    "termination_machine": "arn:aws:states:sample",
    "bind_function": "sample",
    "provision_function": "sample",
    "sweep_function": "sample",
}


def function_environment(
    model: type[FunctionSettings],
    resources: Mapping[str, str],
    overrides: Mapping[str, str],
) -> dict[str, str]:
    """Return the variables from which `model` reads its settings.

    Args:
        model: The function's settings.
        resources: Field name to value (often an unresolved token) for what the stack creates;
            fields that the model lacks are ignored.
        overrides: Field name to value chosen by the user; those of other models are ignored.

    Raises:
        ConfigError: If an override does not validate, or the model requires a field for which
            `resources` has no value.
    """
    names = model.__struct_fields__
    chosen = {name: value for name, value in overrides.items() if name in names}
    required = sorted(field.name for field in fields(model) if field.required)
    missing = [name for name in required if name not in resources]
    if missing:
        raise ConfigError(f"{model.__name__} needs {', '.join(missing)}: the stack gives none")
    sample = {f"{PREFIX}{n.upper()}": v for n, v in {**_SAMPLES, **chosen}.items()}
    try:
        environment = model.from_environment(sample).to_environment()
    except SettingsError as error:
        raise ConfigError(f"settings: {error}") from error
    given = {n: v for n, v in resources.items() if n in names}
    return {**environment, **{f"{PREFIX}{n.upper()}": v for n, v in given.items()}}
