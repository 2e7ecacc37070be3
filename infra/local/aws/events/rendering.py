"""What a target receives: the event, a part of it, a constant, or a filled template.

Source: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-transform-target-input.html
(2026-11-21).
"""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

_VARIABLE = re.compile(r"<([A-Za-z0-9_.-]+)>")
_MISSING = object()


def plain_event(event: Mapping[str, Any]) -> dict[str, Any]:
    """The event as targets see it: times as text, nothing that moto keeps for itself."""
    shown = {key: value for key, value in event.items() if key != "ingestion-time"}
    shown["time"] = _time_text(event.get("time"))
    return shown


def render(target: Mapping[str, Any], event: Mapping[str, Any], *, rule_arn: str) -> str:
    """Return the text a target gets, normally JSON."""
    shown = plain_event(event)
    if target.get("Input") is not None:
        return str(target["Input"])
    if target.get("InputPath"):
        return json.dumps(_at(shown, target["InputPath"], None))
    transformer = target.get("InputTransformer")
    if not transformer:
        return json.dumps(shown)
    values = {
        name: _at(shown, path, _MISSING)
        for name, path in (transformer.get("InputPathsMap") or {}).items()
    }
    values |= {
        "aws.events.rule-arn": rule_arn,
        "aws.events.rule-name": rule_arn.rsplit("/", 1)[-1],
        "aws.events.event.ingestion-time": shown["time"],
        "aws.events.event": {key: value for key, value in shown.items() if key != "detail"},
        "aws.events.event.json": shown,
    }
    return _fill(transformer["InputTemplate"], values)


def _fill(template: str, values: Mapping[str, Any]) -> str:
    """Replace each <name>: quoted places take bare text, others take JSON.

    A template that is one JSON string stays a string, so its variables are bare text too.
    """
    parts: list[str] = []
    position, quoted = 0, False
    for match in _VARIABLE.finditer(template):
        text = template[position : match.start()]
        quoted = _in_quotes(text, quoted=quoted)
        parts.append(text)
        value = values.get(match[1], match[0])
        parts.append(_inside(value) if quoted else _outside(value))
        position = match.end()
    parts.append(template[position:])
    return "".join(parts)


def _in_quotes(text: str, *, quoted: bool) -> bool:
    escaped = False
    for character in text:
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == '"':
            quoted = not quoted
    return quoted


def _inside(value: Any) -> str:
    if value is _MISSING or value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value)
    return json.dumps(text)[1:-1]


def _outside(value: Any) -> str:
    return '""' if value is _MISSING else json.dumps(value)


def _at(document: Any, path: str, default: Any) -> Any:
    """Follow a simple JSON path: names, quoted names and array positions."""
    here = document
    for name, quoted, index in re.findall(
        r"\.([A-Za-z0-9_-]+)|\['([^']+)'\]|\[(\d+)\]", path.removeprefix("$")
    ):
        if index:
            if not isinstance(here, list) or int(index) >= len(here):
                return default
            here = here[int(index)]
        else:
            if not isinstance(here, dict) or (name or quoted) not in here:
                return default
            here = here[name or quoted]
    return here


def _time_text(value: Any) -> str:
    if isinstance(value, str) and not value.replace(".", "", 1).isdigit():
        return value
    if isinstance(value, datetime):
        moment = value
    else:
        moment = datetime.fromtimestamp(float(value or 0), UTC)
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
