"""YAML within bounds: depth, aliases and keys are checked before values are built.

Plain scalars have the types that kubectl gives them, which is not quite YAML 1.1: dates, times and
`=` are strings, `y` and `n` are booleans, `017` and `0o17` are both octal.

Source: https://github.com/kubernetes-sigs/yaml/blob/master/goyaml.v2/resolve.go (2026-11).
"""

import math
import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

_TAG: Final = "tag:yaml.org,2002:"
_SIGNED: Final = "-+0123456789"
# Tag, pattern of its plain scalars, and their first characters; the first that matches counts.
_WORDS: Final = (
    ("null", "~|null|Null|NULL|", ("~", "n", "N", "")),
    (
        "bool",
        "y|Y|yes|Yes|YES|true|True|TRUE|on|On|ON|n|N|no|No|NO|false|False|FALSE|off|Off|OFF",
        "yYtToOnNfF",
    ),
    (
        "int",
        (
            "[-+]?(0[bB]_*[01][01_]*|0[xX]_*[0-9a-fA-F][0-9a-fA-F_]*|0[oO]?_*[0-7][0-7_]*"
            "|[1-9][0-9_]*|0_*)"
        ),
        _SIGNED,
    ),
    (
        "float",
        (
            "[-+]?([.][0-9][0-9_]*|[0-9][0-9_]*([.][0-9_]*)?)([eE][-+]?[0-9]+)?"
            "|[-+]?[.](inf|Inf|INF)|[.](nan|NaN|NAN)"
        ),
        _SIGNED + ".",
    ),
    ("merge", "<<", "<"),
)


def _whole(loader: Any, scalar: yaml.ScalarNode) -> int:
    written = loader.construct_scalar(scalar).replace("_", "")
    return int(written, 8 if re.match("[-+]?0[0-7]", written) else 0)


def _number(loader: Any, scalar: yaml.ScalarNode) -> float | str:
    found: float = loader.construct_yaml_float(scalar)
    beyond = math.isinf(found) and "inf" not in scalar.value.lower()
    return scalar.value if beyond else found


def _kubernetes_loader() -> Any:
    # libyaml where PyYAML was built with it: ten times faster.
    base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    members = {
        "bool_values": {**base.bool_values, "y": True, "n": False},
        "yaml_implicit_resolvers": {},
    }
    loader: Any = type("KubernetesLoader", (base,), members)
    for name, pattern, first in _WORDS:
        loader.add_implicit_resolver(_TAG + name, re.compile(rf"(?:{pattern})\Z"), list(first))
    loader.add_constructor(_TAG + "int", _whole)
    loader.add_constructor(_TAG + "float", _number)
    loader.add_constructor(_TAG + "timestamp", base.construct_yaml_str)
    return loader


_LOADER: Final[Any] = _kubernetes_loader()


class YamlProblemError(ValueError):
    """YAML that is malformed or beyond the bounds.

    Attributes:
        reason: The problem in one line.
        number: Number of the document, 0 when unknown.
    """

    def __init__(self, reason: str, mark: yaml.Mark | None = None, number: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.number = number
        self._mark = mark

    def place(self, lines_before: int) -> str:
        """Return line and column, empty when unknown.

        Args:
            lines_before: Number of lines of the file before the text.
        """
        if self._mark is None:
            return ""
        return f"line {lines_before + self._mark.line + 1}, column {self._mark.column + 1}"


def check_depth(content: str, max_depth: int) -> None:
    """Parse the text without building values.

    Raises:
        YamlProblemError: If something is nested deeper than `max_depth`, or the text is no YAML.
    """
    depth = 0
    try:
        for event in yaml.parse(content, Loader=_LOADER):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > max_depth:
                    raise YamlProblemError(f"is nested more than {max_depth} levels deep")
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    except yaml.YAMLError as error:
        raise _problem(error, 0) from error


def load_all(content: str, max_nodes: int) -> Iterator[Any]:
    """Yield the value of each document, None for an empty one.

    Args:
        max_nodes: The most values of a document, aliases counted as often as they are used.

    Raises:
        YamlProblemError: If the text is no YAML, or a document is beyond the bounds.
    """
    aliased = "*" in content and "&" in content
    number = 1
    try:
        loader = _LOADER(content)
        while loader.check_node():
            yaml_node = loader.get_node()
            if aliased:
                _check_aliases(yaml_node, max_nodes, number)
            _check_keys(yaml_node, number)
            value = loader.construct_document(yaml_node)
            _name_keys(value)
            yield value
            number += 1
    except (yaml.YAMLError, ValueError, RecursionError, LookupError) as error:
        if isinstance(error, YamlProblemError):
            raise
        raise _problem(error, number) from error


def _check_aliases(root: yaml.Node, max_nodes: int, number: int) -> None:
    """Refuse a document that aliases expand too much: a value counts as often as it is used."""
    sizes: dict[int, int] = {}
    entered: set[int] = set()
    stack: list[tuple[yaml.Node, bool]] = [(root, False)]
    while stack:
        yaml_node, leaving = stack.pop()
        if leaving:
            sizes[id(yaml_node)] = 1 + sum(sizes[id(child)] for child in _children(yaml_node))
            if sizes[id(yaml_node)] > max_nodes:
                raise YamlProblemError(
                    f"its aliases expand to more than {max_nodes} values", number=number
                )
            entered.discard(id(yaml_node))
        elif id(yaml_node) in entered:
            raise YamlProblemError("an alias refers to what contains it", number=number)
        elif id(yaml_node) not in sizes:
            entered.add(id(yaml_node))
            stack.append((yaml_node, True))
            stack.extend((child, False) for child in _children(yaml_node))


def _check_keys(root: yaml.Node, number: int) -> None:
    """Refuse duplicate keys of an object: parsers disagree on which one counts."""
    seen: set[int] = set()
    stack = [root]
    while stack:
        yaml_node = stack.pop()
        if isinstance(yaml_node, yaml.ScalarNode) or id(yaml_node) in seen:
            continue
        seen.add(id(yaml_node))
        if isinstance(yaml_node, yaml.MappingNode):
            seen_keys: set[object] = set()
            for key, value in yaml_node.value:
                stack.append(value)
                if not isinstance(key, yaml.ScalarNode) or key.value == "<<":
                    continue
                if key.value in seen_keys:
                    shown = key.value if len(key.value) <= 60 else f"{key.value[:57]}..."
                    reason = f"says {shown!r} twice; keep one of them"
                    raise YamlProblemError(reason, key.start_mark, number)
                seen_keys.add(key.value)
        else:
            stack.extend(yaml_node.value)


def _name_keys(root: object) -> None:
    """Turn keys that YAML reads as numbers or booleans into the strings JSON would have."""
    seen: set[int] = set()
    stack = [root]
    while stack:
        value = stack.pop()
        if not isinstance(value, (dict, list)) or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, list):
            stack.extend(value)
            continue
        stack.extend(value.values())
        if not all(type(key) is str for key in value):
            named = {_key(key): entry for key, entry in value.items()}
            value.clear()
            value.update(named)


def _key(key: object) -> str:
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    return str(key)


def _children(yaml_node: yaml.Node) -> list[yaml.Node]:
    if isinstance(yaml_node, yaml.MappingNode):
        return [entry for pair in yaml_node.value for entry in pair]
    return list(yaml_node.value) if isinstance(yaml_node, yaml.SequenceNode) else []


def _problem(error: Exception, number: int) -> YamlProblemError:
    mark = getattr(error, "problem_mark", None)
    reason = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    reason = "is nested too deep" if isinstance(error, RecursionError) else reason
    reason = "a value is not what its tag says" if isinstance(error, LookupError) else reason
    first = str(reason).splitlines()[0] if str(reason) else type(error).__name__
    return YamlProblemError(f"is not YAML: {first}", mark, number)
