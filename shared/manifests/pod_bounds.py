"""Bounds on the rules of one pod, so that a plan takes bounded time.

The API server bounds only the bytes of a pod. kube-scheduler has no bounds; a pod that exceeds
these is left to it, and no node is launched for it. Rules are counted before they are parsed: of a
pod that exceeds a bound, only what its node needs is parsed.
"""

from collections.abc import Iterator, Sized
from typing import Final

from shared.manifests.raw_json import Raw, mapping, mappings
from shared.model.kubernetes.pods import SpreadPolicy

MAX_TERMS: Final = 256
MAX_PREFERENCES: Final = 100
MAX_RULES: Final = 100
MAX_EXPRESSIONS: Final = 2_000
MAX_TOLERATIONS: Final = 1_000
MAX_HOST_PORTS: Final = 100
MAX_RESOURCES: Final = 100
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_OF_PODS: Final = ("podAffinity", "podAntiAffinity")
_EXPRESSIONS: Final = (
    *("matchExpressions", "matchFields", "matchLabels"),
    *("matchLabelKeys", "mismatchLabelKeys"),
)


def exceeded_bounds(spec: Raw, host_ports: Sized, resources: Sized) -> Iterator[str]:
    """Yield the bounds that a pod exceeds, for people.

    Args:
        spec: Spec of the pod.
        host_ports: Its host ports.
        resources: The resources that it requests.
    """
    affinity = mapping(spec.get("affinity"))
    of_nodes = mapping(affinity.get("nodeAffinity"))
    terms = mappings(mapping(of_nodes.get(REQUIRED)).get("nodeSelectorTerms"))
    liked = mappings(of_nodes.get(PREFERRED))
    sections = [mapping(affinity.get(kind)) for kind in _OF_PODS]
    required = [term for section in sections for term in mappings(section.get(REQUIRED))]
    preferred = [term for section in sections for term in mappings(section.get(PREFERRED))]
    spreads = mappings(spec.get("topologySpreadConstraints"))
    soft = sum(
        spread.get("whenUnsatisfiable") == SpreadPolicy.SCHEDULE_ANYWAY for spread in spreads
    )
    counted = [
        ("OR-ed terms of required node affinity", len(terms), MAX_TERMS),
        ("preferences", len(liked) + len(preferred) + soft, MAX_PREFERENCES),
        (
            "required affinities to pods and topology spreads",
            len(required) + len(spreads) - soft,
            MAX_RULES,
        ),
        ("tolerations", len(mappings(spec.get("tolerations"))), MAX_TOLERATIONS),
        ("host ports", len(host_ports), MAX_HOST_PORTS),
        ("resources", len(resources), MAX_RESOURCES),
    ]
    if all(count <= most for _, count, most in counted):
        # Expressions are counted only if there are not too many terms.
        liked = [mapping(entry.get("preference")) for entry in liked]
        preferred = [mapping(entry.get("podAffinityTerm")) for entry in preferred]
        expressions = len(mapping(spec.get("nodeSelector"))) + sum(
            map(expression_count, (*terms, *liked, *required, *preferred, *spreads))
        )
        what = "expressions in affinities, selectors and spreads"
        counted.append((what, expressions, MAX_EXPRESSIONS))
    for what, count, most in counted:
        if count > most:
            yield f"{count} {what}: no node is launched for a pod with more than {most}"


def expression_count(term: Raw) -> int:
    """Return how many labels and expressions a term or a spread of a pod has."""
    found = 0
    for value in (term, term.get("labelSelector"), term.get("namespaceSelector")):
        selector = mapping(value)
        for field in _EXPRESSIONS:
            some = selector.get(field)
            found += len(some) if isinstance(some, (list, dict)) else 0
    return found


def expressions_fault(expressions: Sized) -> str:
    """Return why expressions of one term or selector are too many, empty if they are not.

    Call this before the expressions are parsed: merging expressions about one key takes quadratic
    time.
    """
    count = len(expressions)
    if count <= MAX_EXPRESSIONS:
        return ""
    return f"{count} expressions: no node is launched for a pod with more than {MAX_EXPRESSIONS}"
