"""Flexibility: how many values of a label the options of one launch must offer (`minValues`).

Source: https://karpenter.sh/docs/concepts/nodepools/#min-values (2026-11).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType
from shared.model.ec2.launches import LaunchOption

MinValues = Mapping[str, int]
_Option = TypeVar("_Option")
# A fleet has one capacity type: its values are counted over options and fallback together.
_OF_ALL: Final = keys.CAPACITY_TYPE


def missing_values(least: MinValues, offered: Iterable[Mapping[str, str]]) -> dict[str, int]:
    """Return how many values are offered of each label that has fewer than asked for.

    Args:
        least: The least number of values, by label key.
        offered: The labels of each option.
    """
    found: dict[str, set[str]] = {key: set() for key in least}
    for labels in offered:
        for key, values in found.items():
            if key in labels:
                values.add(labels[key])
    return {key: len(values) for key, values in found.items() if len(values) < least[key]}


def values_of_one_launch(least: MinValues) -> MinValues:
    """Return what the options of one capacity type must offer."""
    return {key: number for key, number in least.items() if key != _OF_ALL}


def offers_enough(
    least: MinValues,
    options: Iterable[LaunchOption],
    own: Mapping[str, str],
    types: Mapping[str, InstanceType],
) -> bool:
    """Return whether the options of one launch offer enough values of each label.

    Args:
        least: The least number of values, by label key.
        options: What the launch asks for.
        own: Labels that the nodes get from their owner.
        types: The catalogue, by name; a type that is not in it offers no value.
    """
    asked = values_of_one_launch(least)
    return not asked or not missing_values(
        asked, (_offered(option, own, types) for option in options)
    )


def price_of_enough(
    least: MinValues,
    options: Sequence[LaunchOption],
    own: Mapping[str, str],
    types: Mapping[str, InstanceType],
) -> int:
    """Return the price up to which a launch needs options to offer enough values of each label.

    Args:
        least: The least number of values, by label key.
        options: What the launch may ask for, cheapest first.
        own: Labels that the nodes get from their owner.
        types: The catalogue, by name; a type that is not in it offers no value.

    Returns:
        Micro-dollars per hour; 0 where nothing is asked for, or all options offer too few.
    """
    chosen = fewest_options(
        values_of_one_launch(least), options, lambda entry: _offered(entry, own, types)
    )
    return max((option.price_micros_per_hour for option in chosen or ()), default=0)


def _offered(
    option: LaunchOption, own: Mapping[str, str], types: Mapping[str, InstanceType]
) -> Mapping[str, str]:
    known = types.get(option.offering.instance_type)
    return {} if known is None else {**known.labels, keys.ZONE: option.offering.zone, **own}


def fewest_options(
    least: MinValues, options: Sequence[_Option], labels_of: Callable[[_Option], Mapping[str, str]]
) -> list[_Option] | None:
    """Return the first options that together offer enough values, None if even all do not.

    Args:
        least: The least number of values, by label key.
        options: In order of preference.
        labels_of: The labels of an option.
    """
    missing: dict[str, set[str]] = {key: set() for key in least}
    chosen: list[_Option] = []
    for option in options:
        if not missing:
            break
        labels = labels_of(option)
        new = [key for key, known in missing.items() if key in labels and labels[key] not in known]
        if new:
            chosen.append(option)
        for key in new:
            missing[key].add(labels[key])
            if len(missing[key]) >= least[key]:
                del missing[key]
    return None if missing else chosen


def describe_missing(least: MinValues, offered: Mapping[str, int]) -> str:
    """Return what is missing, for people.

    Args:
        least: The least number of values, by label key.
        offered: What `missing_values` found.
    """
    parts = (f"{key} has {offered[key]} of {least[key]}" for key in sorted(offered))
    return f"minValues requirement is not met: {', '.join(parts)}"
