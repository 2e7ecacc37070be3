"""Reads a document that people wrote; every wrong field is reported, not only the first."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from shared.manifests.raw_json import Raw
from shared.model import labels as keys
from shared.model.errors import InvalidManifestError, fault_line
from shared.model.nearest import write_instead
from shared.model.resources import Resources


class FieldProblem(Struct, frozen=True, kw_only=True):
    """One wrong field: its path, its value, and what to write instead."""

    field: str
    value: object
    remedy: str

    def __str__(self) -> str:
        return fault_line(self.field, self.value, self.remedy)

    @property
    def public(self) -> str:
        """Return the text for conditions and Events, without user data."""
        secret = "userdata" in self.field.lower().replace("_", "")
        return fault_line(self.field, "not shown" if secret else self.value, self.remedy)


class InvalidProvisionerError(InvalidManifestError):
    """A Provisioner that cannot be used; `problems` lists everything wrong with it, in order."""

    def __init__(self, problems: Sequence[FieldProblem]) -> None:
        first = problems[0]
        super().__init__(field=first.field, value=first.value, remedy=first.remedy)
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return "; ".join(str(problem) for problem in self.problems)


class Section:
    """One object of a manifest; reading a wrong field records a problem and continues.

    Args:
        raw: The object.
        path: Its path, such as `spec.provider`; empty for the document.
        problems: Receives the problems; all sections of a document share it.
    """

    def __init__(self, raw: Raw, path: str, problems: list[FieldProblem]) -> None:
        self.raw = raw
        self.path = path
        self.problems = problems

    def path_of(self, key: str) -> str:
        """Return the path of a member."""
        return f"{self.path}.{key}" if self.path else key

    def has(self, key: str) -> bool:
        """Return whether a member exists and is not null."""
        return self.raw.get(key) is not None

    def refuse(self, key: str, remedy: str) -> None:
        """Record a problem of a member."""
        self.problems.append(
            FieldProblem(field=self.path_of(key), value=self.raw.get(key), remedy=remedy)
        )

    def refuse_unknown(self, known: Iterable[str]) -> None:
        """Refuse unknown members; the problem has the nearest known name."""
        names = sorted(known)
        for key in sorted(set(self.raw) - set(names)):
            self.refuse(key, unknown_field_remedy(key, names))

    def text(self, key: str, default: str = "") -> str:
        """Return a string."""
        value = self.raw.get(key)
        if value is None:
            return default
        if not isinstance(value, str):
            self.refuse(key, "write a string, in quotes if it looks like a number")
            return default
        return value

    def integer(self, key: str, minimum: int, maximum: int | None = None) -> int | None:
        """Return an integer within inclusive bounds, None when absent or refused."""
        value = self.raw.get(key)
        if value is None:
            return None
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or value < minimum or (maximum is not None and value > maximum):
            bounds = f"of {minimum} or more" if maximum is None else f"from {minimum} to {maximum}"
            self.refuse(key, f"write a whole number {bounds}")
            return None
        return int(value)

    def flag(self, key: str) -> bool | None:
        """Return true or false, None when absent or refused."""
        value = self.raw.get(key)
        if value is None or isinstance(value, bool):
            return value
        self.refuse(key, "write true or false, without quotes")
        return None

    def text_map(self, key: str) -> dict[str, str]:
        """Return strings by name, empty when absent or refused; null is an empty string."""
        found = {}
        section = self.section(key)
        if section is not None:
            for name in section.raw:
                value = section.raw[name]
                if value is None or isinstance(value, str):
                    found[name] = value or ""
                else:
                    section.refuse(name, "write a string, in quotes if it looks like a number")
        return found

    def section(self, key: str) -> "Section | None":
        """Return an object, None when absent or refused."""
        value = self.raw.get(key)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            self.refuse(key, "write an object with named fields")
            return None
        return Section(value, self.path_of(key), self.problems)

    def sections(self, key: str) -> list["Section"]:
        """Return a list of objects, empty when absent or refused."""
        value = self.raw.get(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(entry, Mapping) for entry in value):
            self.refuse(key, "write a list of objects")
            return []
        return [
            Section(entry, f"{self.path_of(key)}[{number}]", self.problems)
            for number, entry in enumerate(value)
        ]

    def resources(self) -> Resources:
        """Return this object's members as amounts; bad or negative quantities are refused.

        Null is no amount, as in built-in kinds of the API; CRDs refuse it.
        """
        given = {name: value for name, value in self.raw.items() if value is not None}
        return Resources.from_mapping(
            dict(Section(given, self.path, self.problems).resources_with_zeros().items)
        )

    def resources_with_zeros(self) -> Resources:
        """Return the same with zeros kept, for fields where zero differs from absent."""
        found = {}
        for name in self.raw:
            try:
                amount = Resources.parse({name: self.raw[name]})
            except ValueError:
                self.refuse(name, "write a quantity such as 500m, 2 or 10Gi")
                continue
            if amount[name] < 0:
                self.refuse(name, "write a quantity of 0 or more")
            found[name] = amount[name]
        return Resources(tuple(sorted(found.items())))


def unknown_field_remedy(name: str, known: Iterable[str]) -> str:
    """Return what to write instead of an unknown field."""
    return f"unknown field; {write_instead(name, known)}"


def key_fault(key: str) -> str | None:
    """Return what to change in a label, annotation or taint key, None when it is well formed."""
    if key != key.strip():
        return f"remove the space around the key: write {key.strip()!r}"
    if keys.is_key(key):
        return None
    return "write a key such as name or example.com/name: letters, digits, '-', '_' and '.'"


def value_fault(value: str) -> str | None:
    """Return what to change in a label or taint value, None when it is well formed."""
    if keys.is_value(value):
        return None
    return "write at most 63 letters, digits, '-', '_' and '.', beginning and ending with the first"
