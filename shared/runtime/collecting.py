"""When a function's process looks for objects that only refer to each other: after its work."""

import functools
import gc
from collections.abc import Callable
from typing import Any

Handler = Callable[..., Any]


def collects_afterwards(handler: Handler) -> Handler:
    """Return the handler, but without the garbage collector while it works.

    Each time that many objects were made it would look at all of them again: at 10,000 nodes half
    of a plan's time. Nearly all are freed without it. What is left is collected once the work is
    done, and what stays for the next invocation is never looked at again.

    Source: https://docs.python.org/3/library/gc.html#gc.freeze (2026-11-24).
    """

    @functools.wraps(handler)
    def wrapped(event: dict[str, Any], context: Any) -> Any:
        gc.disable()
        try:
            return handler(event, context)
        finally:
            gc.enable()
            gc.collect()
            gc.freeze()

    return wrapped
