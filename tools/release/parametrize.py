"""One template with parameters, of several that differ by one option each.

Where a template with an option differs from the one without, the result has both, under a condition
of the option's parameter; where the text that stands for the option's value is, it has a reference.
So what CloudFormation makes of the result is what the app would have synthesised.

A template as JSON; functions of CloudFormation in it are values as texts are.
Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-conditions.html
(2026-12).
"""

import difflib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from tools.release.options import Option

Json = Any
NO_VALUE: Final = {"Ref": "AWS::NoValue"}
_MISSING: Final = object()
# In the text of a document: the place of a function of CloudFormation.
_PLACE: Final = re.compile("\ue000([0-9a-f]+)\ue001")
# Keys of dictionaries under which stands the text of a JSON document, taken apart.
_DOCUMENT: Final = "Document"
_RAW: Final = "Raw"


class ParametrizeError(RuntimeError):
    """Two options change the same place, or one changes what no parameter can change."""


def parametrize(
    plain: Mapping[str, Json], with_option: Sequence[tuple[Option, Mapping[str, Json]]]
) -> dict[str, Json]:
    """Return the template with a parameter for each option that has an effect on it.

    Args:
        plain: The template with each option at `off`.
        with_option: The template with one option as in its trial, for each.

    Raises:
        ParametrizeError: If that is impossible.
    """
    everywhere = [option for option, _ in with_option if not option.context]
    changed = [
        (option, _apart(_referring(template, option, *everywhere)))
        for option, template in with_option
        if template != plain
    ]
    whole: dict[str, Json] = _together(_merged(_apart(_referring(plain, *everywhere)), changed, ()))
    text = json.dumps(whole)
    whole["Parameters"] = {
        option.parameter: _parameter(option)
        for option, template in with_option
        if template != plain or f'{{"Ref": "{option.parameter}"}}' in text
    }
    whole["Conditions"] = {
        name: condition for option, _ in changed for name, condition in _conditions(option).items()
    }
    used = json.dumps(whole["Resources"]) + json.dumps(whole.get("Outputs", {}))
    needed = {name for name in whole["Conditions"] if f'"{name}"' in used}
    needed |= {name.removeprefix("No") for name in needed if name.startswith("No")}
    whole["Conditions"] = {
        name: value for name, value in whole["Conditions"].items() if name in needed
    }
    return whole


def _condition(option: Option) -> str:
    return f"Has{option.parameter}"


def _conditions(option: Option) -> dict[str, Json]:
    name = _condition(option)
    value: Json = {"Ref": option.parameter}
    if option.many:
        value = {"Fn::Join": [",", value]}
    off = {"Fn::Equals": [value, option.off]}
    return {name: {"Fn::Not": [off]}, f"No{name}": off}


def _parameter(option: Option) -> dict[str, Json]:
    made: dict[str, Json] = {"Type": "CommaDelimitedList" if option.many else "String"}
    if option.default is not None:
        made["Default"] = option.default
    if option.values:
        made["AllowedValues"] = list(option.values)
    elif option.pattern:
        made["AllowedPattern"] = option.pattern
    return {**made, "Description": option.about}


# --- The text that stands for a value, and the reference to its parameter ------------------------


def _referring(value: Json, *options: Option) -> Json:
    """Return a template with references where the trials of options stand."""
    for option in options:
        value = _referring_one(value, option) if option.trial else value
    return value


def _referring_one(value: Json, option: Option) -> Json:
    if isinstance(value, dict):
        return {key: _referring_one(entry, option) for key, entry in value.items()}
    if isinstance(value, list):
        return _referring_list(value, option)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return {"Ref": option.parameter} if str(value) == option.trial else value
    if not isinstance(value, str) or option.trial not in value:
        return value
    if value == option.trial:
        return {"Ref": option.parameter}
    return {"Fn::Join": ["", _parts(value, option)]}


def _referring_list(values: list[Json], option: Option) -> Json:
    made: list[Json] = []
    for value in values:
        found = _referring_one(value, option)
        inside = isinstance(value, str) and value != option.trial and option.trial in value
        # The parts of a text that was joined already are one list.
        made += found["Fn::Join"][1] if inside else [found]
    if not option.many or option.trial not in values:
        return made
    # A list of some values and those of a parameter.
    joined = [
        {"Fn::Join": [",", entry]} if entry == {"Ref": option.parameter} else entry
        for entry in made
    ]
    return {"Fn::Split": [",", {"Fn::Join": [",", joined]}]}


def _parts(text: str, option: Option) -> list[Json]:
    reference: Json = {"Ref": option.parameter}
    if option.many:
        # In the text of a JSON document, a list of texts.
        reference = {"Fn::Join": ['","', reference]}
    parts: list[Json] = []
    for number, part in enumerate(text.split(option.trial)):
        parts += [reference, part] if number else [part]
    return [part for part in parts if part != ""]


# --- Documents: texts of JSON in which functions of CloudFormation stand -------------------------


def _apart(template: Mapping[str, Json]) -> dict[str, Json]:
    """Return a template with the attachment's text taken apart, so that its fields are compared."""
    resources = dict(template["Resources"])
    for name, resource in resources.items():
        value = resource.get("Properties", {}).get("Value")
        if resource["Type"] == "AWS::SSM::Parameter" and isinstance(value, dict):
            document = {_DOCUMENT: _read(value["Fn::Join"][1])}
            properties = {**resource["Properties"], "Value": document}
            resources[name] = {**resource, "Properties": properties}
    kept = {key: value for key, value in template.items() if key not in {"Parameters", "Rules"}}
    return {**kept, "Resources": resources}


def _read(parts: Sequence[Json]) -> Json:
    """Return the fields of a document; each leaf is the parts of its text."""
    text = "".join(part if isinstance(part, str) else _placed(part) for part in parts)
    # What stands for a number is no JSON without quotation marks.
    return _leaves(json.loads(re.sub(f"(?<=[:,\\[])({_PLACE.pattern})", '"\ue002\\1"', text)))


def _placed(value: Json) -> str:
    return f"\ue000{json.dumps(value, sort_keys=True).encode().hex()}\ue001"


def _leaves(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _leaves(entry) for key, entry in value.items()}
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return {_RAW: _filled(re.sub('"\ue002(.*?)"', r"\1", text))}


def _filled(text: str) -> list[Json]:
    parts: list[Json] = [
        json.loads(bytes.fromhex(part)) if number % 2 else part
        for number, part in enumerate(_PLACE.split(text))
    ]
    return [part for part in parts if part != ""]


def _together(value: Json) -> Json:
    if isinstance(value, dict):
        if value.keys() == {_DOCUMENT}:
            return _join(_written(value[_DOCUMENT]))
        return {key: _together(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_together(entry) for entry in value]
    return value


def _written(value: Json) -> list[Json]:
    """Return the parts of a document's text."""
    if value.keys() == {_RAW}:
        return list(value[_RAW])
    if value.keys() == {"Fn::If"}:
        condition, yes, no = value["Fn::If"]
        return [{"Fn::If": [condition, _join(_written(yes)), _join(_written(no))]}]
    fields: list[Json] = []
    always = False
    for key, entry in value.items():
        begun = _filled(f'"{key}":')
        if (optional := _if_present(entry)) is None:
            fields += [*([","] if always else []), *begun, *_written(entry)]
            always = True
            continue
        condition, given = optional
        there = _join(["," if always else "", *begun, *_written(given)])
        fields.append({"Fn::If": [condition, there, ""]})
    return ["{", *fields, "}"]


def _if_present(entry: Json) -> tuple[str, Json] | None:
    """Return the condition of a field that only one of two documents has, and its value."""
    if entry.keys() != {"Fn::If"} or entry["Fn::If"][2] != NO_VALUE:
        return None
    condition, given, _ = entry["Fn::If"]
    return condition, given


def _join(parts: Iterable[Json]) -> Json:
    joined: list[Json] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        elif part != "":
            joined.append(part)
    if all(isinstance(part, str) for part in joined):
        return "".join(joined)
    return {"Fn::Join": ["", joined]}


# --- Two templates, one with an option -----------------------------------------------------------


def _merged(plain: Json, with_option: Sequence[tuple[Option, Json]], path: tuple[str, ...]) -> Json:
    changed = [(option, value) for option, value in with_option if value != plain]
    if not changed:
        return plain
    values = [plain, *(value for _, value in changed)]
    if all(isinstance(value, dict) and not _is_function(value) for value in values):
        return _merged_fields(plain, changed, path)
    if all(isinstance(value, list) for value in values):
        return _merged_list(plain, changed, path)
    if len(changed) > 1:
        names = " and ".join(option.parameter for option, _ in changed)
        raise ParametrizeError(f"{'.'.join(path)}: {names} both change it")
    ((option, value),) = changed
    if option.stands_always:
        return value
    return {
        "Fn::If": [
            _condition(option),
            NO_VALUE if value is _MISSING else value,
            NO_VALUE if plain is _MISSING else plain,
        ]
    }


def _merged_fields(
    plain: Mapping[str, Json],
    changed: Sequence[tuple[Option, Mapping[str, Json]]],
    path: tuple[str, ...],
) -> dict[str, Json]:
    keys = dict.fromkeys(
        key for value in (plain, *(value for _, value in changed)) for key in value
    )
    made: dict[str, Json] = {}
    for key in keys:
        own = plain.get(key, _MISSING)
        others = [(option, value.get(key, _MISSING)) for option, value in changed]
        if path in {("Resources",), ("Outputs",)}:
            made[key] = _conditional(own, others, (*path, key))
        else:
            made[key] = _merged(own, others, (*path, key))
    return made


def _conditional(
    plain: Json, with_option: Sequence[tuple[Option, Json]], path: tuple[str, ...]
) -> Json:
    """Return a resource, under a condition where it is not in each template."""
    if plain is _MISSING:
        having = [(option, value) for option, value in with_option if value is not _MISSING]
        if len(having) > 1:
            raise ParametrizeError(f"{'.'.join(path)}: two options make it")
        ((option, value),) = having
        return {"Condition": _condition(option), **value}
    lacking = [option for option, value in with_option if value is _MISSING]
    there = [(option, value) for option, value in with_option if value is not _MISSING]
    made = _merged(plain, there, path)
    if len(lacking) > 1:
        raise ParametrizeError(f"{'.'.join(path)}: two options remove it")
    return {"Condition": f"No{_condition(lacking[0])}", **made} if lacking else made


def _merged_list(
    plain: Sequence[Json], changed: Sequence[tuple[Option, Sequence[Json]]], path: tuple[str, ...]
) -> list[Json]:
    """Return a list with what each option inserts, removes and changes at its place."""
    inserted: dict[int, list[Json]] = {}
    others: dict[int, list[tuple[Option, Json]]] = {}
    texts = [json.dumps(value, sort_keys=True) for value in plain]
    for option, values in changed:
        of_option = [json.dumps(value, sort_keys=True) for value in values]
        matcher = difflib.SequenceMatcher(None, texts, of_option, autojunk=False)
        for _, begin, end, from_, to in matcher.get_opcodes():
            for place, source in zip(range(begin, end), range(from_, to), strict=False):
                others.setdefault(place, []).append((option, values[source]))
            for place in range(begin + to - from_, end):
                others.setdefault(place, []).append((option, _MISSING))
            new = [
                {"Fn::If": [_condition(option), values[source], NO_VALUE]}
                for source in range(from_ + end - begin, to)
            ]
            if new:
                inserted.setdefault(end, []).extend(new)
    made: list[Json] = []
    for place, value in enumerate(plain):
        made += inserted.get(place, [])
        made.append(_merged(value, others.get(place, []), (*path, str(place))))
    return [*made, *inserted.get(len(plain), [])]


def _is_function(value: Mapping[str, Json]) -> bool:
    return len(value) == 1 and all(key in {"Ref", _RAW} or key.startswith("Fn::") for key in value)
