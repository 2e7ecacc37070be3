"""Faults for tests: answer N of a path with an error, late, or not at all."""

from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class Fault:
    """What is to go wrong.

    Attributes:
        path: Start of the paths it applies to.
        method: Only this method; any when None.
        watch: Only watches (True), only others (False), or both (None).
        skip: How many matching requests pass before it strikes.
        times: How many requests it strikes.
        status: Answer with this HTTP status and a `Status` body.
        reason: Reason of that `Status`.
        retry_after: Value of a Retry-After header, in seconds.
        delay_seconds: Wait before anything else.
        abort: Reset the connection without an answer.
        close: Answer 200 with an empty body and end it: for a watch, a stream that ends at once.
        struck: How often it has struck.
    """

    path: str
    method: str | None = None
    watch: bool | None = None
    skip: int = 0
    times: int = 1
    status: int | None = None
    reason: str = "InternalError"
    retry_after: int | None = None
    delay_seconds: float = 0.0
    abort: bool = False
    close: bool = False
    struck: int = 0


class Faults:
    """The faults waiting to strike, in the order they were set."""

    def __init__(self) -> None:
        self._waiting: list[Fault] = []

    def add(self, fault: Fault) -> None:
        self._waiting.append(fault)

    def clear(self) -> None:
        self._waiting.clear()

    def strike(self, method: str, path: str, *, watch: bool) -> Fault | None:
        """Return the fault that strikes this request, if any, and count it."""
        for fault in self._waiting:
            if not path.startswith(fault.path) or fault.struck >= fault.times:
                continue
            if fault.method not in {None, method} or fault.watch not in {None, watch}:
                continue
            if fault.skip > 0:
                fault.skip -= 1
                continue
            fault.struck += 1
            return fault
        return None
