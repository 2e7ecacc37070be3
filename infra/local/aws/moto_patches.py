"""Replacing names of moto, so that a renamed one is noticed at once and all can be undone.

Every replacement goes through `Repairs.replace`, which refuses a name that is not there, and a
callable whose parameters are not those the replacement was written for.
"""

import inspect
from collections.abc import Callable
from importlib import metadata
from typing import Any, Final

MOTO_VERSION: Final = "5.2.5"
REPAIRS: Final[dict[str, Callable[[], None]]] = {}


class RepairError(RuntimeError):
    """moto does not look as the repairs expect; the text names the place."""


def check_version() -> None:
    """Refuse any version of moto but the one these repairs were written against."""
    installed = metadata.version("moto")
    if installed != MOTO_VERSION:
        raise RepairError(
            f"moto {installed} is installed, but its repairs were written for {MOTO_VERSION}: "
            "install the pinned version, or check each repair's self-test and raise the pin"
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
        """Return what `owner.name` is now, after checking that it is what we think it is."""
        where = f"{owner.__name__}.{name}"
        found = inspect.getattr_static(owner, name, None)
        if found is None:
            raise RepairError(f"moto has no {where} any more; the repair needs another place")
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


_OF_PROCESS: Final = Repairs()
_APPLIED: Final[set[str]] = set()
replace, add = _OF_PROCESS.replace, _OF_PROCESS.add


def repair(name: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Register the decorated callable as the repair `name`; it must patch when called."""

    def register(patch: Callable[[], None]) -> Callable[[], None]:
        REPAIRS[name] = patch
        return patch

    return register


def apply_repairs() -> None:
    """Apply every registered repair once in this process."""
    check_version()
    # Those for speed first: the others import all of moto.
    for name in sorted(REPAIRS, key=lambda name: not name.startswith("speed")):
        if name not in _APPLIED:
            REPAIRS[name]()
            _APPLIED.add(name)
