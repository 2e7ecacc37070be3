"""The list of repairs and the guard around them."""

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

MOTO_VERSION = "5.2.5"
REPAIRS: dict[str, Callable[[], None]] = {}
_applied: set[str] = set()


class UnknownMotoError(RuntimeError):
    """The installed moto is not the one the repairs were written against."""


def repair(name: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Register the decorated callable as the repair `name`; it must patch when called."""

    def register(patch: Callable[[], None]) -> Callable[[], None]:
        if name in REPAIRS:
            raise ValueError(f"repair {name!r} is registered twice")
        REPAIRS[name] = patch
        return patch

    return register


def replace(owner: Any, name: str, value: Any) -> None:
    """Set an attribute that must exist already: a renamed private name fails loudly.

    Raises:
        AttributeError: `owner` has no such name in this moto.
    """
    getattr(owner, name)
    setattr(owner, name, value)


def add(owner: Any, name: str, value: Any) -> None:
    """Set an attribute that may be new."""
    setattr(owner, name, value)


def stock_classmethod(owner: Any, name: str) -> Callable[..., Any]:
    """Return the plain function behind a class method."""
    function: Callable[..., Any] = getattr(owner, name).__func__
    return function


def as_classmethod(function: Callable[..., Any]) -> Any:
    """Make a class method of a function that takes the class first."""
    return classmethod(function)


def apply_repairs() -> None:
    """Apply every registered repair once.

    Raises:
        UnknownMotoError: another moto is installed.
    """
    installed = version("moto")
    if installed != MOTO_VERSION:
        raise UnknownMotoError(
            f"moto {installed} is installed, but the repairs are for {MOTO_VERSION}: "
            "install the pinned version, or check each repair's self-test and raise the pin"
        )
    # Those for speed first: the others import all of moto.
    for name in sorted(REPAIRS, key=lambda name: not name.startswith("speed")):
        if name not in _applied:
            REPAIRS[name]()
            _applied.add(name)
