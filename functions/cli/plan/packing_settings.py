"""Packing settings as people write them: `key=value`, with units and defaults explained."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from functions.cli.input_error import InvalidSettingError
from shared.instance_types.pod_addresses import PodNetwork
from shared.model import labels as keys
from shared.model.dollars_and_counts import first_names
from shared.model.ec2.instance_types import CapacityType
from shared.model.nearest import write_instead
from shared.model.plan import Plan
from shared.model.policy import PreferencePolicy
from shared.model.provisioner import Provisioner
from shared.model.values import replace
from shared.packing.problem import PackingSettings, bounds_text, within_bounds

_DEFAULTS: Final = PackingSettings()
# One key for both capacity types.
BOTH_K: Final = "diversification_k"
_K_FIELDS: Final = ("diversification_k_on_demand", "diversification_k_spot")
# Nothing to explain: a plan so close to its bound, in percent.
_CLOSE_PERCENT: Final = 2
# Settings of which one begins as another does mean different things.
_NEAR: Final = 0.8
_NO_WEIGHTS: Final = "none"
_FLAGS: Final = {"true": True, "false": False}
_ATTRIBUTE: Final = re.compile(r"^ {8}(\w+): (.*(?:\n {12}.*)*)", re.MULTILINE)


def with_settings(
    base: PackingSettings, given: Iterable[str], others_known: Iterable[str] = ()
) -> PackingSettings:
    """Return the settings with the given ones changed; the last one counts.

    Args:
        given: Each `key=value`.
        others_known: Keys that the command accepts besides, for the error.

    Raises:
        InvalidSettingError: If a key is unknown or a value is invalid for it.
    """
    for text in given:
        key, sign, value = (part.strip() for part in text.partition("="))
        if not sign:
            raise InvalidSettingError(f"--set {text!r}: write key=value")
        base = replace(base, **_change(key, value, others_known))
    return base


def overridden_policy_notes(
    settings: PackingSettings, base: PackingSettings, owners: Sequence[Provisioner]
) -> tuple[str, ...]:
    """Return a note on the owners whose own preference policy overrides the changed setting.

    It names them and says what to do; empty if there are none. The policy that a NodePool or an
    annotation sets takes precedence over the setting.

    Raises:
        InvalidSettingError: If all override it: the plans would be the same.
    """
    policy = settings.preference_policy
    own = [owner for owner in owners if owner.preference_policy is not None]
    if policy == base.preference_policy or not own:
        return ()
    named = first_names(f"{owner.kind} {owner.name} ({owner.preference_policy})" for owner in own)
    note = (
        f"preference_policy={policy} does not reach {named}, with a policy of their own: "
        f"annotate each with {keys.PREFERENCE_POLICY}: {policy}"
    )
    if len(own) == len(owners):
        raise InvalidSettingError(f"--set {note}")
    return (note,)


def changed_settings(
    settings: PackingSettings, base: PackingSettings = _DEFAULTS
) -> tuple[str, ...]:
    """Return the names of settings that differ, each with its value, in order of declaration."""
    return tuple(
        f"{name}={_written(getattr(settings, name))}"
        for name in settings.__struct_fields__
        if getattr(settings, name) != getattr(base, name)
    )


def without_each_setting(settings: PackingSettings) -> tuple[tuple[str, PackingSettings], ...]:
    """Return, for each setting that is not the default, its text and the settings without it.

    A plan with these shows what the left-out setting costs. Both diversifications count as
    one when they are the same.
    """
    changed = [changed_key.split("=", 1)[0] for changed_key in changed_settings(settings)]
    both = {getattr(settings, name) for name in _K_FIELDS}
    groups: list[tuple[str, tuple[str, ...]]] = []
    for name in changed:
        group: tuple[str, tuple[str, ...]]
        if name in _K_FIELDS and set(_K_FIELDS) <= set(changed) and len(both) == 1:
            group = (f"{BOTH_K}={_written(both.copy().pop())}", _K_FIELDS)
        else:
            group = (f"{name}={_written(getattr(settings, name))}", (name,))
        if group not in groups:
            groups.append(group)
    return tuple(
        (named, replace(settings, **{key: getattr(_DEFAULTS, key) for key in fields}))
        for named, fields in groups
    )


def without_headroom(settings: PackingSettings, pending_pods: int) -> PackingSettings | None:
    """Return the settings without headroom for later pods; None if the batch gets none anyway.

    Args:
        pending_pods: Number of pending pods.
    """
    changed = replace(settings, leftover_value_percent=0, growth_percent=0)
    return changed if changed != settings and pending_pods <= settings.small_batch_pods else None


def by_the_cheapest_spot(settings: PackingSettings, plan: Plan) -> PackingSettings | None:
    """Return the settings that compare spot nodes by their cheapest offering alone.

    None if they do so already, or if the plan launches no spot node or is close to its bound.
    """
    spot = any(node.options[0].offering.capacity_type == CapacityType.SPOT for node in plan.nodes)
    if settings.diversification_k_spot == 1 or not spot or plan.gap_percent <= _CLOSE_PERCENT:
        return None
    return replace(settings, diversification_k_spot=1)


def described_settings(
    defaults: PackingSettings | PodNetwork = _DEFAULTS,
) -> tuple[tuple[str, str, str], ...]:
    """Return (key, default, what it means with its unit) for every setting."""
    meanings = {
        match[1]: " ".join(match[2].split())
        for match in _ATTRIBUTE.finditer(defaults.__doc__ or "")
    }
    return tuple(
        (name, _written(getattr(defaults, name)), meanings.get(name, ""))
        for name in defaults.__struct_fields__
    )


def flag(key: str, value: str) -> bool:
    """Return a setting that is true or false.

    Raises:
        InvalidSettingError: If it is neither.
    """
    if value.lower() not in _FLAGS:
        raise InvalidSettingError(f"--set {key}={value}: write true or false")
    return _FLAGS[value.lower()]


def _change(key: str, value: str, others_known: Iterable[str]) -> dict[str, Any]:
    if key == BOTH_K:
        return dict.fromkeys(_K_FIELDS, _whole(key, value))
    default = getattr(_DEFAULTS, key, None) if not key.startswith("_") else None
    if isinstance(default, bool):
        return {key: flag(key, value)}
    if isinstance(default, PreferencePolicy):
        return {key: _policy(key, value)}
    if isinstance(default, int):
        return {key: _whole(key, value)}
    if isinstance(default, Mapping):
        return {key: _weights(key, value)}
    known = (*PackingSettings.__struct_fields__, BOTH_K, *others_known)
    instead = write_instead(key, known, _NEAR)
    raise InvalidSettingError(f"--set {key}: unknown setting; {instead}")


def _whole(key: str, value: str) -> int:
    name = _K_FIELDS[0] if key == BOTH_K else key
    digits = value.replace("_", "")
    number = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 16 else -1
    if not within_bounds(name, number):
        raise InvalidSettingError(f"--set {key}={value}: write a whole number {bounds_text(name)}")
    return number


def _policy(key: str, value: str) -> PreferencePolicy:
    for policy in PreferencePolicy:
        if value.lower() == policy.lower():
            return policy
    raise InvalidSettingError(f"--set {key}={value}: write {' or '.join(PreferencePolicy)}")


def _weights(key: str, value: str) -> dict[str, int]:
    found = {}
    given = "" if value == _NO_WEIGHTS else value
    for part in filter(None, given.split(",")):
        name, sign, percent = part.rpartition(":")
        digits = percent.isascii() and percent.isdigit() and len(percent) < 10
        if not sign or not name or not digits or int(percent) < 1:
            example = "type:percent pairs such as m5.large:80,c5.large:120"
            raise InvalidSettingError(f"--set {key}={value}: write {example}")
        found[name.strip()] = int(percent)
    return dict(sorted(found.items()))


def _written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return (
            ",".join(f"{name}:{percent}" for name, percent in sorted(value.items())) or _NO_WEIGHTS
        )
    return str(value)
