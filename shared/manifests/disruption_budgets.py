"""PodDisruptionBudgets."""

from shared.manifests.affinity import label_selector
from shared.manifests.raw_json import Raw, mapping, text
from shared.model.kubernetes.disruption_budgets import PodDisruptionBudget


def decode_budget(raw: Raw) -> PodDisruptionBudget:
    """Return the budget with the counts of its status; without a status it allows nothing.

    Parts of its selector that cannot be read are left out: it then protects more pods, not fewer.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/policy-resources/
    pod-disruption-budget-v1/ (2026-08).
    """
    metadata, spec = mapping(raw.get("metadata")), mapping(raw.get("spec"))
    allowed = mapping(raw.get("status")).get("disruptionsAllowed")
    return PodDisruptionBudget(
        namespace=text(metadata.get("namespace")),
        name=text(metadata.get("name")),
        selector=label_selector(spec.get("selector"), "spec", []),
        disruptions_allowed=allowed if isinstance(allowed, int) else 0,
        always_allows_unhealthy=spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow",
    )
