"""Behaviors of Karpenter that a NodePool may choose instead of Dovetail's.

The annotation `dovetail.dev/as-karpenter` names them, as in `expiration,images`.
"""

from shared.manifests.custom_resources.pool_lifetimes import names_in
from shared.manifests.problems import Section
from shared.manifests.raw_json import mapping
from shared.model import labels as keys
from shared.model.policy import KarpenterBehavior


def check_karpenter_behaviors(metadata: Section) -> None:
    """Refuse an annotation with an unknown name, or without any name."""
    value = mapping(metadata.raw.get("annotations")).get(keys.AS_KARPENTER)
    if value is None:
        return
    named = names_in(value) if isinstance(value, str) else frozenset()
    if not named or named - set(KarpenterBehavior):
        path, known = metadata.path_of("annotations"), ", ".join(KarpenterBehavior)
        annotations = Section({keys.AS_KARPENTER: value}, path, metadata.problems)
        remedy = f"name some of {known}, with commas between, or remove it"
        annotations.refuse(keys.AS_KARPENTER, remedy)
