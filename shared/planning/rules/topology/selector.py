"""Which pods a topology rule counts."""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from shared.model.kubernetes.pods import LabelSelector
from shared.model.requirements import Requirement, Requirements

# The label that the API server gives every namespace.
_NAME_LABEL: Final = "kubernetes.io/metadata.name"
# A rule without a selector counts no pods.
NOBODY: Final = LabelSelector(
    requirements=Requirements((Requirement(key="", complement=False, values=frozenset()),))
)


class Selection(Struct, frozen=True, cache_hash=True):
    """The pods that all of some (namespaces, selector) pairs count; namespaces None means all.

    A pod's affinity terms share one, by which each term's counter is found.
    """

    parts: tuple[tuple[frozenset[str] | None, LabelSelector], ...]

    def counts(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Return whether a pod of that namespace with these labels is counted."""
        return all(
            (namespaces is None or namespace in namespaces) and selector.selects(labels)
            for namespaces, selector in self.parts
        )

    def describe(self) -> str:
        """Return the first selector as people write it."""
        selector = self.parts[0][1]
        asked = [f"{key}={value}" for key, value in selector.match_labels]
        asked += [
            requirement.describe() for requirement in selector.requirements if requirement.key
        ]
        if selector == NOBODY:
            return "no pods: its labelSelector is missing"
        return f"pods with {', '.join(asked)}" if asked else "any pods"


def own_selection(namespace: str, selector: LabelSelector | None) -> Selection:
    """Return the pods of one namespace that the selector of a spread counts.

    An empty selector counts no pods: kube-scheduler skips such spreads.
    """
    if selector is None or selector == LabelSelector():
        selector = NOBODY
    return Selection(((frozenset((namespace,)), selector),))


def namespace_labels(
    labels: Mapping[str, Mapping[str, str]], seen: Iterable[str]
) -> dict[str, dict[str, str]]:
    """Return the labels of namespaces by name, that of its name included.

    Args:
        labels: Those that are known, by name.
        seen: Names of namespaces whose labels may be unknown.
    """
    found = {name: {_NAME_LABEL: name} for name in sorted(seen)}
    found.update({name: {_NAME_LABEL: name, **labels[name]} for name in sorted(labels)})
    return found
