"""For what the nodes of a Provisioner or NodePool are replaced, or not.

The annotations `dovetail.dev/drift`, `dovetail.dev/rebalance` and `dovetail.dev/scheduled-change`
say `on` or `off`.
"""

from collections.abc import Mapping
from typing import Final

from shared.manifests.fields import mapping
from shared.manifests.problems import Section
from shared.model.policy import Trigger

_SAID: Final[Mapping[str, bool]] = {"on": True, "off": False}


def read_triggers(annotations: Mapping[str, str]) -> dict[Trigger, bool]:
    """Return what annotations say; one that says something else says nothing."""
    found = {trigger: annotations.get(trigger.annotation, "") for trigger in Trigger}
    return {trigger: _SAID[value] for trigger, value in found.items() if value in _SAID}


def check_triggers(metadata: Section) -> None:
    """Refuse annotations that say neither."""
    annotations = mapping(metadata.raw.get("annotations"))
    section = Section(annotations, metadata.at("annotations"), metadata.problems)
    for trigger in Trigger:
        if annotations.get(trigger.annotation) not in (None, *_SAID):
            section.refuse(trigger.annotation, 'write "on" or "off", or remove it')
