"""Flexibility: how many values of a label the options of one launch must offer (`minValues`).

Source: https://karpenter.sh/docs/concepts/nodepools/#min-values (2026-11).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType
from shared.model.ec2.launches import LaunchOption

Least = Mapping[str, int]
_Way = TypeVar("_Way")
# A fleet is of one capacity type: these values are counted over all that a node may become.
_OF_ALL: Final = keys.CAPACITY_TYPE


def too_few(least: Least, offered: Iterable[Mapping[str, str]]) -> dict[str, int]:
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


def of_one_launch(least: Least) -> Least:
    """Return what the options of one capacity type must offer."""
    return {key: number for key, number in least.items() if key != _OF_ALL}


def may_be_asked_for(
    least: Least,
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
    asked = of_one_launch(least)
    return not asked or not too_few(asked, (_offered(option, own, types) for option in options))


def price_of_enough(
    least: Least,
    options: Sequence[LaunchOption],
    own: Mapping[str, str],
    types: Mapping[str, InstanceType],
) -> int:
    """Return up to which price a launch must ask for options to offer enough values of each label.

    Args:
        least: The least number of values, by label key.
        options: What the launch may ask for, cheapest first.
        own: Labels that the nodes get from their owner.
        types: The catalogue, by name; a type that is not in it offers no value.

    Returns:
        Micro-dollars per hour; 0 where nothing is asked for, or all options offer too few.
    """
    chosen = essential(of_one_launch(least), options, lambda entry: _offered(entry, own, types))
    return max((option.price_micros_per_hour for option in chosen or ()), default=0)


def _offered(
    option: LaunchOption, own: Mapping[str, str], types: Mapping[str, InstanceType]
) -> Mapping[str, str]:
    known = types.get(option.offering.instance_type)
    return {} if known is None else {**known.labels, keys.ZONE: option.offering.zone, **own}


def essential(
    least: Least, ways: Sequence[_Way], labels_of: Callable[[_Way], Mapping[str, str]]
) -> list[_Way] | None:
    """Return the first options that together offer enough values, None when all do not.

    Args:
        least: The least number of values, by label key.
        ways: In order of preference.
        labels_of: The labels of an option.
    """
    missing: dict[str, set[str]] = {key: set() for key in least}
    chosen: list[_Way] = []
    for way in ways:
        if not missing:
            break
        labels = labels_of(way)
        new = [key for key, known in missing.items() if key in labels and labels[key] not in known]
        if new:
            chosen.append(way)
        for key in new:
            missing[key].add(labels[key])
            if len(missing[key]) >= least[key]:
                del missing[key]
    return None if missing else chosen


def describe(least: Least, offered: Mapping[str, int]) -> str:
    """Return what is missing, for people.

    Args:
        least: The least number of values, by label key.
        offered: What `too_few` found.
    """
    parts = (f"{key} has {offered[key]} of {least[key]}" for key in sorted(offered))
    return f"minValues requirement is not met: {', '.join(parts)}"
