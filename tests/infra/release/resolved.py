"""What CloudFormation makes of a template and its parameters."""

from collections.abc import Mapping
from typing import Any

NO_VALUE = {"Ref": "AWS::NoValue"}


class _Stack:
    """The values of a stack's parameters and conditions."""

    def __init__(self, template: Mapping[str, Any], given: Mapping[str, str]) -> None:
        self.values: dict[str, Any] = {}
        for name, about in template["Parameters"].items():
            text = given[name] if name in given else about["Default"]
            many = about["Type"] == "CommaDelimitedList"
            self.values[name] = text.split(",") if many else text
        self.conditions: dict[str, bool] = {}
        for name, condition in template.get("Conditions", {}).items():
            self.conditions[name] = self.of(condition)

    def of(self, value: Any) -> Any:
        """Return a value without the functions that are known before anything is made."""
        if isinstance(value, list):
            return [entry for entry in map(self.of, value) if entry != NO_VALUE]
        if not isinstance(value, dict):
            return value
        if len(value) == 1 and (known := self._function(*next(iter(value.items())))) is not None:
            return known
        fields = {key: self.of(entry) for key, entry in value.items()}
        return {key: entry for key, entry in fields.items() if entry != NO_VALUE}

    def _function(self, name: str, given: Any) -> Any:
        match name:
            case "Ref":
                return self.values.get(given)
            case "Fn::If":
                return self.of(given[1] if self.conditions[given[0]] else given[2])
            case "Fn::Equals":
                return self.of(given[0]) == self.of(given[1])
            case "Fn::Not":
                return not self.of(given[0])
            case "Fn::Split":
                return _split(given[0], self.of(given[1]))
            case "Fn::Join":
                return _joined(given[0], self.of(given[1]))
        return None


def resolved(template: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, Any]:
    """Return the resources and outputs of a template without its parameters and conditions.

    Raises:
        KeyError: If a parameter without a default is not given.
    """
    stack = _Stack(template, given)
    return {
        section: {
            name: {key: stack.of(part) for key, part in entry.items() if key != "Condition"}
            for name, entry in template[section].items()
            if stack.conditions.get(entry.get("Condition", ""), True)
        }
        for section in ("Resources", "Outputs")
        if section in template
    }


def _joined(separator: str, parts: list[Any]) -> Any:
    """Return a text, or a Join of what only AWS knows."""
    flat: list[Any] = []
    for number, part in enumerate(parts):
        for entry in [*([separator] if number else []), *_flat(part)]:
            if isinstance(entry, str) and flat and isinstance(flat[-1], str):
                flat[-1] += entry
            elif entry != "":
                flat.append(entry)
    if all(isinstance(part, str) for part in flat):
        return "".join(flat)
    return {"Fn::Join": ["", flat]}


def _flat(part: Any) -> list[Any]:
    if isinstance(part, dict) and part.keys() == {"Fn::Join"} and part["Fn::Join"][0] == "":
        return list(part["Fn::Join"][1])
    return [part]


def _split(separator: str, value: Any) -> list[Any]:
    """Return the parts of a text in which what only AWS knows has no separator."""
    parts: list[list[Any]] = [[]]
    for entry in _flat(value):
        pieces = entry.split(separator) if isinstance(entry, str) else [entry]
        for number, piece in enumerate(pieces):
            if number:
                parts.append([])
            parts[-1].append(piece)
    return [_joined("", part) for part in parts]
