"""What is done for the nodes of a NodePool as Karpenter does it, where Dovetail does otherwise.

The annotation `dovetail.dev/as-karpenter` names it, as in `expiration,images`.
"""

from shared.manifests.custom_resources.pool_lifetimes import names_in
from shared.manifests.fields import mapping
from shared.manifests.problems import Section
from shared.model import labels as keys
from shared.model.policy import KarpenterWay


def check_ways(metadata: Section) -> None:
    """Refuse an annotation with a name that is not known, or without any."""
    value = mapping(metadata.raw.get("annotations")).get(keys.AS_KARPENTER)
    if value is None:
        return
    named = names_in(value) if isinstance(value, str) else frozenset()
    if not named or named - set(KarpenterWay):
        path, known = metadata.at("annotations"), ", ".join(KarpenterWay)
        annotations = Section({keys.AS_KARPENTER: value}, path, metadata.problems)
        remedy = f"name some of {known}, with commas between, or remove it"
        annotations.refuse(keys.AS_KARPENTER, remedy)
