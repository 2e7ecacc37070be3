"""Statuses are for people: one that cannot be written costs itself only, and no work."""

import logging
from collections.abc import Callable
from typing import Any, Final

from shared.model.errors import AutoscalerError

_LOG: Final = logging.getLogger(__name__)


def write_status(write: Callable[..., None], name: str, *args: Any, **fields: Any) -> bool:
    """Write the status of one object; return whether that could be done, and log why not."""
    try:
        write(name, *args, **fields)
    except AutoscalerError as error:
        _LOG.warning("the status of %s is not written: %s", name, error)
        return False
    return True
