"""How much one pod may ask for: what a plan can weigh in a bounded time.

The API server bounds a pod by its bytes alone. kube-scheduler bounds nothing; a pod above these
numbers is left to it, and no node is launched for it. Numbers are counted before anything is read:
of a pod that is above them only as much is read as is needed where it runs.
"""

from collections.abc import Iterator, Sized
from typing import Final

from shared.manifests.fields import Raw, mapping, mappings
from shared.model.kubernetes.pods import SpreadPolicy

MOST_TERMS: Final = 256
MOST_PREFERENCES: Final = 100
MOST_RULES: Final = 100
MOST_EXPRESSIONS: Final = 2_000
MOST_TOLERATIONS: Final = 1_000
MOST_HOST_PORTS: Final = 100
MOST_RESOURCES: Final = 100
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_OF_PODS: Final = ("podAffinity", "podAntiAffinity")
_EXPRESSIONS: Final = (
    *("matchExpressions", "matchFields", "matchLabels"),
    *("matchLabelKeys", "mismatchLabelKeys"),
)


def excesses(spec: Raw, host_ports: Sized, resources: Sized) -> Iterator[str]:
    """Yield, for people, what a pod has too many of.

    Args:
        spec: Of the pod.
        host_ports: That it takes.
        resources: That it requests.
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
        ("OR-ed terms of required node affinity", len(terms), MOST_TERMS),
        ("preferences", len(liked) + len(preferred) + soft, MOST_PREFERENCES),
        (
            "required affinities to pods and topology spreads",
            len(required) + len(spreads) - soft,
            MOST_RULES,
        ),
        ("tolerations", len(mappings(spec.get("tolerations"))), MOST_TOLERATIONS),
        ("host ports", len(host_ports), MOST_HOST_PORTS),
        ("resources", len(resources), MOST_RESOURCES),
    ]
    if all(count <= most for _, count, most in counted):
        # Of more terms than these it is not asked how long they are.
        liked = [mapping(entry.get("preference")) for entry in liked]
        preferred = [mapping(entry.get("podAffinityTerm")) for entry in preferred]
        expressions = len(mapping(spec.get("nodeSelector"))) + sum(
            map(expressions_of, (*terms, *liked, *required, *preferred, *spreads))
        )
        what = "expressions in affinities, selectors and spreads"
        counted.append((what, expressions, MOST_EXPRESSIONS))
    for what, count, most in counted:
        if count > most:
            yield f"{count} {what}: no node is launched for a pod with more than {most}"


def expressions_of(term: Raw) -> int:
    """Return how many labels and expressions a term or a spread of a pod names."""
    found = 0
    for value in (term, term.get("labelSelector"), term.get("namespaceSelector")):
        selector = mapping(value)
        for field in _EXPRESSIONS:
            some = selector.get(field)
            found += len(some) if isinstance(some, (list, dict)) else 0
    return found


def too_many(expressions: Sized) -> str:
    """Return what is wrong with so many expressions of one term or selector, empty for nothing.

    To be asked before they are read: expressions about one key take time by their square.
    """
    count = len(expressions)
    if count <= MOST_EXPRESSIONS:
        return ""
    return f"{count} expressions: no node is launched for a pod with more than {MOST_EXPRESSIONS}"
