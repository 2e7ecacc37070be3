"""Writes statuses, which are for people: a failed write is logged and stops nothing else."""

import logging
from collections.abc import Callable
from typing import Any, Final

from shared.model.errors import AutoscalerError

_LOG: Final = logging.getLogger(__name__)


def write_status(write: Callable[..., None], name: str, *args: Any, **fields: Any) -> bool:
    """Write the status of one object; return whether it was written, and log why not."""
    try:
        write(name, *args, **fields)
    except AutoscalerError as error:
        _LOG.warning("the status of %s is not written: %s", name, error)
        return False
    return True
