"""Annotations that turn the triggers of a Provisioner or NodePool on or off.

The annotations `dovetail.dev/drift`, `dovetail.dev/rebalance` and `dovetail.dev/scheduled-change`
say `on` or `off`.
"""

from collections.abc import Mapping
from typing import Final

from shared.manifests.problems import Section
from shared.manifests.raw_json import mapping
from shared.model.policy import Trigger

_VALUES: Final[Mapping[str, bool]] = {"on": True, "off": False}


def read_triggers(annotations: Mapping[str, str]) -> dict[Trigger, bool]:
    """Return whether each trigger is on, from annotations; other values are ignored."""
    found = {trigger: annotations.get(trigger.annotation, "") for trigger in Trigger}
    return {trigger: _VALUES[value] for trigger, value in found.items() if value in _VALUES}


def check_triggers(metadata: Section) -> None:
    """Refuse annotations with other values."""
    annotations = mapping(metadata.raw.get("annotations"))
    section = Section(annotations, metadata.path_of("annotations"), metadata.problems)
    for trigger in Trigger:
        if annotations.get(trigger.annotation) not in (None, *_VALUES):
            section.refuse(trigger.annotation, 'write "on" or "off", or remove it')
