"""Disruption budgets of a Provisioner, in an annotation: it has no field for them.

The annotation `dovetail.dev/disruption-budgets` is a JSON list of budgets as a NodePool has them.
"""

import json
from typing import Final

from shared.manifests.api.budgets import Budget
from shared.manifests.api.parts import read_part
from shared.manifests.custom_resources.node_budgets import read_budgets
from shared.manifests.problems import Section
from shared.manifests.raw_json import mapping
from shared.model import labels as keys
from shared.model.node_budgets import NodeBudget

_MOST: Final = 50
_REMEDY: Final = 'write a JSON list of at most 50 budgets, such as [{"nodes": "10%"}]'


def read_annotated_budgets(metadata: Section) -> tuple[NodeBudget, ...] | None:
    """Return the budgets of the annotation, None without it; a wrong one is a problem."""
    written = mapping(metadata.raw.get("annotations")).get(keys.DISRUPTION_BUDGETS)
    if written is None:
        return None
    path = metadata.path_of("annotations")
    listed = _list(written)
    if listed is None:
        annotations = Section({keys.DISRUPTION_BUDGETS: written}, path, metadata.problems)
        annotations.refuse(keys.DISRUPTION_BUDGETS, _REMEDY)
        return None
    for number, entry in enumerate(listed):
        place = f"{path}.{keys.DISRUPTION_BUDGETS}[{number}]"
        read_part(Budget, entry, place, metadata.problems)
    return read_budgets(listed, None)


def _list(written: object) -> list[object] | None:
    try:
        found = json.loads(str(written))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) and len(found) <= _MOST else None
