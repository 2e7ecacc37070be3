"""Errors in what a user gave to a command."""

from shared.model.errors import PermanentError


class InputError(PermanentError):
    """An input that the command cannot use; one line that says what and where."""


class InvalidSettingError(InputError):
    """A setting that cannot be read; one line that says what to write."""
