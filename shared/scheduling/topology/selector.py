"""Which pods a topology rule counts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from shared.model.kubernetes.pods import AffinityTerm, LabelSelector
from shared.model.requirements import Requirement, Requirements

# What the API server labels every namespace with.
_NAME_LABEL: Final = "kubernetes.io/metadata.name"
# A rule without a selector counts no pods.
_NOBODY: Final = LabelSelector(
    requirements=Requirements((Requirement(key="", complement=False, values=frozenset()),))
)


@dataclass(frozen=True, slots=True)
class Selection:
    """The pods that all of some (namespaces, selector) pairs count; namespaces None means all."""

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
        if selector == _NOBODY:
            return "no pods: its labelSelector is missing"
        return f"pods with {', '.join(asked)}" if asked else "any pods"


class Namespaces:
    """Which namespaces a term means."""

    def __init__(self, labels: Mapping[str, Mapping[str, str]], seen: Iterable[str]) -> None:
        """Take the labels of namespaces by name, and names of which no labels are known."""
        self._labels = {name: {_NAME_LABEL: name} for name in sorted(seen)}
        self._labels.update({name: {_NAME_LABEL: name, **labels[name]} for name in sorted(labels)})
        self._found: dict[LabelSelector, frozenset[str]] = {}

    def selection(self, namespace: str, terms: Iterable[AffinityTerm]) -> Selection:
        """Return the pods that all terms of a pod in this namespace count."""
        return Selection(
            tuple((self._of(term, namespace), term.selector or _NOBODY) for term in terms)
        )

    def own(self, namespace: str, selector: LabelSelector | None) -> Selection:
        """Return the pods of one namespace that the selector of a spread counts.

        An empty selector counts no pods: kube-scheduler skips such spreads.
        """
        if selector is None or selector == LabelSelector():
            selector = _NOBODY
        return Selection(((frozenset((namespace,)), selector),))

    def _of(self, term: AffinityTerm, namespace: str) -> frozenset[str] | None:
        if term.namespace_selector is None:
            return frozenset(term.namespaces or (namespace,))
        if term.namespace_selector == LabelSelector():
            return None
        if term.namespace_selector not in self._found:
            self._found[term.namespace_selector] = frozenset(
                name
                for name, labels in self._labels.items()
                if term.namespace_selector.selects(labels)
            )
        return self._found[term.namespace_selector].union(term.namespaces)
