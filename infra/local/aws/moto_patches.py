"""Replacing names of the emulator, so that a renamed one is noticed at once and all can be undone.

Every replacement goes through `Repairs.replace`, which refuses a name that is not there, a version
that was not read, and a callable whose parameters are not those the replacement was written for.
"""

import inspect
from collections.abc import Callable
from importlib import metadata
from typing import Any, Final

EMULATOR: Final = "moto"
EMULATOR_VERSION: Final = "5.2.5"


class RepairError(RuntimeError):
    """The emulator does not look as the repairs expect; the text names the place."""


def check_version() -> None:
    """Refuse any version of the emulator but the one these repairs were written against."""
    installed = metadata.version(EMULATOR)
    if installed != EMULATOR_VERSION:
        raise RepairError(
            f"{EMULATOR} {installed} is installed, but its repairs were written for "
            f"{EMULATOR_VERSION}; install {EMULATOR}=={EMULATOR_VERSION} or read them again"
        )


class Repairs:
    """Replacements made so far, undone in reverse order by `undo`."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []
        self._names: list[str] = []

    @property
    def names(self) -> tuple[str, ...]:
        """What was replaced, in order, as `Owner.name`."""
        return tuple(self._names)

    def stock(self, owner: Any, name: str, parameters: tuple[str, ...] | None = None) -> Any:
        """Return what `owner.name` is now, after checking that it is what we think it is.

        Args:
            owner: the class or module that holds the name.
            name: the attribute.
            parameters: names of the leading parameters the stock callable must have.
        """
        where = f"{owner.__name__}.{name}"
        found = inspect.getattr_static(owner, name, None)
        if found is None:
            raise RepairError(f"{EMULATOR} has no {where} any more; the repair needs another place")
        if parameters is not None:
            actual = tuple(inspect.signature(found).parameters)[: len(parameters)]
            if actual != parameters:
                raise RepairError(f"{where} takes {actual}, the repair expects {parameters}")
        return found

    def replace(
        self, owner: Any, name: str, new: Any, *, parameters: tuple[str, ...] | None = None
    ) -> None:
        """Put `new` in the place of `owner.name`."""
        self.stock(owner, name, parameters)
        own = vars(owner)
        if name in own:
            before = own[name]
            self._undo.append(lambda: setattr(owner, name, before))
        else:
            self._undo.append(lambda: delattr(owner, name))
        setattr(owner, name, new)
        self._names.append(f"{owner.__name__}.{name}")

    def add(self, owner: Any, name: str, new: Any) -> None:
        """Give `owner` a name it must not have yet."""
        if inspect.getattr_static(owner, name, None) is not None:
            raise RepairError(f"{owner.__name__}.{name} exists by now; drop our version of it")
        setattr(owner, name, new)
        self._undo.append(lambda: delattr(owner, name))
        self._names.append(f"{owner.__name__}.{name}")

    def route(self, table: dict[str, Any], path: str, handler: Any) -> None:
        """Add a path to a service's table of routes."""
        if path in table:
            raise RepairError(f"the route {path} exists by now; drop our version of it")
        table[path] = handler
        self._undo.append(lambda: table.pop(path, None) and None)
        self._names.append(path)

    def undo(self) -> None:
        while self._undo:
            self._undo.pop()()
        self._names.clear()
