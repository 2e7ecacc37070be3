"""How much one pod may ask for: what a plan can weigh in a bounded time.

The API server bounds a pod by its bytes alone. kube-scheduler bounds nothing; a pod above these
numbers is left to it, and no node is launched for it.
"""

from collections.abc import Iterable, Iterator, Sized
from typing import Final

from shared.model.kubernetes.pods import AffinityTerm, LabelSelector, Scheduling, SpreadPolicy

MOST_TERMS: Final = 256
MOST_PREFERENCES: Final = 100
MOST_RULES: Final = 100
MOST_EXPRESSIONS: Final = 2_000
MOST_TOLERATIONS: Final = 1_000
MOST_HOST_PORTS: Final = 100
MOST_RESOURCES: Final = 100


def excesses(asked: Scheduling) -> Iterator[str]:
    """Yield, for people, what a pod has too many of."""
    weights = [term.weight for term in (*asked.affinity, *asked.anti_affinity)]
    required = sum(weight is None for weight in weights)
    hard = sum(spread.policy == SpreadPolicy.DO_NOT_SCHEDULE for spread in asked.spreads)
    soft = len(asked.spreads) - hard
    counted = (
        ("OR-ed terms of required node affinity", len(asked.required_terms), MOST_TERMS),
        (
            "preferences",
            len(weights) - required + len(asked.preferred_nodes) + soft,
            MOST_PREFERENCES,
        ),
        ("required affinities to pods and topology spreads", required + hard, MOST_RULES),
        ("expressions in affinities, selectors and spreads", _expressions(asked), MOST_EXPRESSIONS),
        ("tolerations", len(asked.tolerations), MOST_TOLERATIONS),
        ("host ports", len(asked.host_ports), MOST_HOST_PORTS),
        ("resources", len(asked.requests.items), MOST_RESOURCES),
    )
    for what, count, most in counted:
        if count > most:
            yield f"{count} {what}: no node is launched for a pod with more than {most}"


def too_many(expressions: Sized) -> str:
    """Return what is wrong with so many expressions of one term or selector, empty for nothing.

    To be asked before they are read: expressions about one key take time by their square.
    """
    count = len(expressions)
    if count <= MOST_EXPRESSIONS:
        return ""
    return f"{count} expressions: no node is launched for a pod with more than {MOST_EXPRESSIONS}"


def _expressions(asked: Scheduling) -> int:
    nodes = (
        asked.node_selector,
        *asked.required_terms,
        *(preferred_node.requirements for preferred_node in asked.preferred_nodes),
    )
    return sum(len(node.items) for node in nodes) + sum(
        len(selector.match_labels) + len(selector.requirements.items)
        for selector in _selectors(asked)
    )


def _selectors(asked: Scheduling) -> Iterator[LabelSelector]:
    terms: Iterable[AffinityTerm] = (*asked.affinity, *asked.anti_affinity)
    for term in terms:
        yield from (
            label_selector
            for label_selector in (term.selector, term.namespace_selector)
            if label_selector is not None
        )
    yield from (spread.selector for spread in asked.spreads if spread.selector is not None)
