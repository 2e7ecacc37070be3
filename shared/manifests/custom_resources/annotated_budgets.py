"""Disruption budgets of a Provisioner, in an annotation: it has no field for them.

The annotation `dovetail.dev/disruption-budgets` is a JSON list of budgets as a NodePool has them.
"""

from typing import Final

from shared.manifests.api.budgets import Budget
from shared.manifests.api.parts import read_part
from shared.manifests.custom_resources.node_budgets import budgets_in
from shared.manifests.problems import Section
from shared.manifests.raw_json import mapping
from shared.model import labels as keys

_REMEDY: Final = 'write a JSON list of at most 50 budgets, such as [{"nodes": "10%"}]'


def check_annotated_budgets(metadata: Section) -> None:
    """Add what is wrong in the annotation to the problems."""
    written = mapping(metadata.raw.get("annotations")).get(keys.DISRUPTION_BUDGETS)
    if written is None:
        return
    path = metadata.path_of("annotations")
    listed = budgets_in(written)
    if listed is None:
        annotations = Section({keys.DISRUPTION_BUDGETS: written}, path, metadata.problems)
        annotations.refuse(keys.DISRUPTION_BUDGETS, _REMEDY)
        return
    for number, entry in enumerate(listed):
        place = f"{path}.{keys.DISRUPTION_BUDGETS}[{number}]"
        read_part(Budget, entry, place, metadata.problems)
