"""Reads node affinity, selectors, topology spreads and pod (anti-)affinity of a pod."""

from collections.abc import Mapping, Sequence
from typing import Final

from shared.manifests.pod_bounds import (
    MAX_EXPRESSIONS,
    MAX_RULES,
    PREFERRED,
    REQUIRED,
    expression_count,
    expressions_fault,
)
from shared.manifests.problems import key_fault, value_fault
from shared.manifests.raw_json import Raw, integer, mapping, mappings, text, text_map, texts
from shared.model import labels as keys
from shared.model.kubernetes.pods import (
    AffinityTerm,
    LabelSelector,
    PreferredNodes,
    SpreadPolicy,
    TopologySpread,
)
from shared.model.requirements import Operator, Requirement, Requirements
from shared.model.values import replace

_ANY: Final = LabelSelector()
# Keys whose terms always count, however many other keys there are: those that all nodes have.
_TOPOLOGY: Final = keys.WELL_KNOWN | {keys.HOSTNAME, keys.ZONE_ID}
_FIELDS = (
    "node affinity: matchFields names a single node: only kube-scheduler can place it; "
    "use matchExpressions"
)


def required_node_terms(affinity: Raw, problems: list[str]) -> tuple[Requirements, ...]:
    """Return the OR-ed terms of the required node affinity; none when it requires nothing.

    Terms without any expression select no node and are left out, as are terms that require a node
    by its name. A name that a node must not have is a hostname that it must not have: both are the
    same on EC2. It is a problem when no term is left although some were required.
    """
    required = mapping(affinity.get("nodeAffinity")).get(REQUIRED)
    if required is None:
        return ()
    terms = []
    by_field = False
    for node_selector_term in mappings(mapping(required).get("nodeSelectorTerms")):
        expressions = mappings(node_selector_term.get("matchExpressions"))
        fields = mappings(node_selector_term.get("matchFields"))
        if any(field.get("operator") != Operator.NOT_IN for field in fields):
            by_field = True
        elif asked := [*expressions, *({**field, "key": keys.HOSTNAME} for field in fields)]:
            terms.append(Requirements.of(_node_requirements(asked, problems)))
    if not terms:
        nothing = "node affinity: the required terms select no node; add matchExpressions"
        problems.append(_FIELDS if by_field else nothing)
    return tuple(terms)


def preferred_node_terms(affinity: Raw, problems: list[str]) -> tuple[PreferredNodes, ...]:
    """Return the preferred node affinity, heaviest first, equal weights in the order written.

    A term that names nodes by field is left out: no new node can have that name.
    """
    found = []
    for entry in mappings(mapping(affinity.get("nodeAffinity")).get(PREFERRED)):
        preference = mapping(entry.get("preference"))
        expressions = mappings(preference.get("matchExpressions"))
        if expressions and not preference.get("matchFields"):
            wanted = Requirements.of(_node_requirements(expressions, problems))
            weight = integer(entry.get("weight")) or 1
            found.append(PreferredNodes(weight=weight, requirements=wanted))
    return tuple(sorted(found, key=lambda entry: -entry.weight))


def pod_affinity_terms(
    affinity: Raw,
    kind: str,
    namespace: str,
    pod_labels: Mapping[str, str],
    problems: list[str],
) -> tuple[AffinityTerm, ...]:
    """Return the terms of `podAffinity` or `podAntiAffinity`: required ones, then preferred.

    Preferred ones come heaviest first, equal weights in the order written.
    """
    section = mapping(affinity.get(kind))
    required = [
        _pod_term(entry, None, namespace, pod_labels, problems)
        for entry in mappings(section.get(REQUIRED))
    ]
    preferred = [
        _pod_term(
            mapping(entry.get("podAffinityTerm")),
            integer(entry.get("weight")) or 1,
            namespace,
            pod_labels,
            problems,
        )
        for entry in mappings(section.get(PREFERRED))
    ]
    return (*required, *sorted(preferred, key=lambda entry: -(entry.weight or 0)))


def bounded_anti_affinity_terms(
    affinity: Raw, namespace: str, pod_labels: Mapping[str, str], problems: list[str]
) -> tuple[AffinityTerm, ...]:
    """Return the required terms of `podAntiAffinity` of a pod that may have too many of them.

    As many are read as a pod may have. The terms beyond the bound are merged into one for each
    topology key, which selects all pods of the namespaces that they name: so no pod is placed where
    kube-scheduler would refuse it. Of keys that are not well known, at most as many are kept, too.
    """
    read: list[AffinityTerm] = []
    expressions = 0
    # By topology key: namespaces, and whether the term is about all namespaces.
    rest: dict[str, tuple[set[str], bool]] = {}
    for entry in mappings(mapping(affinity.get("podAntiAffinity")).get(REQUIRED)):
        if len(read) < MAX_RULES and expressions <= MAX_EXPRESSIONS:
            expressions += expression_count(entry)
            if expressions <= MAX_EXPRESSIONS:
                read.append(_pod_term(entry, None, namespace, pod_labels, problems))
                continue
        key = keys.normalize(text(entry.get("topologyKey")))
        if key in rest or key in _TOPOLOGY or len(rest) < MAX_RULES:
            named, wide = rest.get(key, (set(), False))
            named.update(texts(entry.get("namespaces")) or (namespace,))
            rest[key] = (named, wide or entry.get("namespaceSelector") is not None)
    return (
        *read,
        *(
            AffinityTerm(
                key=key,
                selector=_ANY,
                namespaces=tuple(sorted(named)),
                namespace_selector=_ANY if wide else None,
            )
            for key, (named, wide) in rest.items()
        ),
    )


def topology_spreads(
    spec: Raw, pod_labels: Mapping[str, str], problems: list[str]
) -> tuple[TopologySpread, ...]:
    """Return the topology spread constraints, `matchLabelKeys` folded into the selector."""
    found = []
    for n, constraint in enumerate(mappings(spec.get("topologySpreadConstraints"))):
        path = f"spec.topologySpreadConstraints[{n}]"
        try:
            policy = SpreadPolicy(text(constraint.get("whenUnsatisfiable")) or "DoNotSchedule")
        except ValueError:
            written, known = constraint["whenUnsatisfiable"], ", ".join(SpreadPolicy)
            problems.append(f"{path}.whenUnsatisfiable: {written!r} is not one of {known}")
            continue
        selector = label_selector(constraint.get("labelSelector"), path, problems)
        found.append(
            TopologySpread(
                key=keys.normalize(text(constraint.get("topologyKey"))),
                max_skew=integer(constraint.get("maxSkew")) or 1,
                policy=policy,
                selector=_with_match_label_keys(selector, constraint, pod_labels),
                min_domains=integer(constraint.get("minDomains")),
                honor_affinity=constraint.get("nodeAffinityPolicy") != "Ignore",
                honor_taints=constraint.get("nodeTaintsPolicy") == "Honor",
            )
        )
    return tuple(found)


def used_label_keys(spec: Raw) -> tuple[str, ...]:
    """Return the pod label keys, sorted, that the pod's own selectors read (matchLabelKeys)."""
    affinity = mapping(spec.get("affinity"))
    terms: list[Raw] = list(mappings(spec.get("topologySpreadConstraints")))
    for kind in ("podAffinity", "podAntiAffinity"):
        section = mapping(affinity.get(kind))
        terms += mappings(section.get(REQUIRED))
        terms += [
            mapping(entry.get("podAffinityTerm")) for entry in mappings(section.get(PREFERRED))
        ]
    used: set[str] = set()
    for term in terms:
        used.update(texts(term.get("matchLabelKeys")), texts(term.get("mismatchLabelKeys")))
    return tuple(sorted(used))


def _node_requirements(expressions: Sequence[Raw], problems: list[str]) -> list[Requirement]:
    if many := expressions_fault(expressions):
        problems.append(f"node affinity: {many}")
        return []
    found = []
    for expression in expressions:
        key, values = text(expression.get("key")), texts(expression.get("values"))
        named = values if expression.get("operator") in (Operator.IN, Operator.NOT_IN) else ()
        fault = key_fault(key) or next(filter(None, map(value_fault, named)), None)
        if fault:
            # No node can have such a label.
            problems.append(f"node affinity: {key}: {', '.join(values)}: {fault}")
            continue
        try:
            found.append(Requirement.parse(key, text(expression.get("operator")), values))
        except ValueError as error:
            problems.append(f"node affinity: {key}: {error}")
    return found


def _pod_term(
    entry: Raw,
    weight: int | None,
    namespace: str,
    pod_labels: Mapping[str, str],
    problems: list[str],
) -> AffinityTerm:
    path = "pod affinity"
    others = entry.get("namespaceSelector")
    named = tuple(sorted(set(texts(entry.get("namespaces")))))
    return AffinityTerm(
        key=keys.normalize(text(entry.get("topologyKey"))),
        selector=_with_match_label_keys(
            label_selector(entry.get("labelSelector"), path, problems), entry, pod_labels
        ),
        namespaces=named if named or others is not None else (namespace,),
        namespace_selector=label_selector(others, path, problems),
        weight=weight,
    )


def label_selector(raw: object, path: str, problems: list[str]) -> LabelSelector | None:
    """Return a selector of pods, None when there is none; faults are added to `problems`."""
    if not isinstance(raw, Mapping):
        return None
    found: list[Requirement] = []
    expressions = mappings(raw.get("matchExpressions"))
    match_labels = tuple(sorted(text_map(raw.get("matchLabels")).items()))
    asked: list[tuple[str, tuple[str, ...]]] = [(key, (value,)) for key, value in match_labels]
    if fault := expressions_fault(expressions):
        problems.append(f"{path}: labelSelector: {fault}")
        expressions = []
    for expression in expressions:
        key, operator = text(expression.get("key")), text(expression.get("operator"))
        values = texts(expression.get("values"))
        try:
            parsed = Requirement.parse(key, _pod_operator(operator), values)
            # These are labels of pods: the aliases of node labels do not apply.
            found.append(replace(parsed, key=key))
        except ValueError as error:
            problems.append(f"{path}: labelSelector: {key}: {error}")
            continue
        asked.append((key, values))
    problems += filter(None, (_fault(path, *pair) for pair in asked))
    return LabelSelector(match_labels=match_labels, requirements=Requirements.of(found))


def _fault(path: str, key: str, values: Sequence[str]) -> str:
    """Return why no label can match a selector's expression, empty if one can.

    The API server refuses such a selector in a new pod, and kube-scheduler cannot read it.

    Source: https://github.com/kubernetes/kubernetes/blob/v1.36.3/staging/src/k8s.io/apimachinery/
    pkg/labels/selector.go (NewRequirement, validateLabelKey, validateLabelValue), 2026-11-29.
    """
    found = key_fault(key) or next(filter(None, map(value_fault, values)), None)
    return f"{path}: labelSelector: {key}: {', '.join(values)}: {found}" if found else ""


def _pod_operator(operator: str) -> str:
    if operator in ("Gt", "Lt"):
        raise ValueError(f"operator {operator!r} is not for pod labels")
    return operator


def _with_match_label_keys(
    selector: LabelSelector | None, entry: Raw, pod_labels: Mapping[str, str]
) -> LabelSelector | None:
    """Return the selector narrowed by `matchLabelKeys` and `mismatchLabelKeys` of a rule."""
    if selector is None:
        return None
    same = {k: pod_labels[k] for k in texts(entry.get("matchLabelKeys")) if k in pod_labels}
    other = [
        replace(Requirement.parse("", "NotIn", [pod_labels[k]]), key=k)
        for k in texts(entry.get("mismatchLabelKeys"))
        if k in pod_labels
    ]
    if not same and not other:
        return selector
    return LabelSelector(
        match_labels=tuple(sorted({*selector.match_labels, *same.items()})),
        requirements=Requirements.of((*selector.requirements, *other)),
    )
