"""How preferences of pods are handled on the nodes of one Provisioner or NodePool.

The annotation `dovetail.dev/preference-policy` says `Respect`, `Weigh` or `Ignore`.
"""

from shared.manifests.problems import Section
from shared.manifests.raw_json import mapping
from shared.model import labels as keys
from shared.model.policy import PreferencePolicy


def read_preference_policy(metadata: Section) -> PreferencePolicy | None:
    """Return the policy in the annotation, None without it; a wrong one is a problem."""
    value = mapping(metadata.raw.get("annotations")).get(keys.PREFERENCE_POLICY)
    if value is None:
        return None
    if value not in list(PreferencePolicy):
        path = metadata.path_of("annotations")
        annotations = Section({keys.PREFERENCE_POLICY: value}, path, metadata.problems)
        annotations.refuse(keys.PREFERENCE_POLICY, f"write {' or '.join(PreferencePolicy)}")
        return None
    return PreferencePolicy(value)
