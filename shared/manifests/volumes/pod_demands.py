"""What volumes ask of nodes, put among what their pods ask."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from shared.manifests.volumes.node_demands import Asked, Terms, Use, Volumes
from shared.model import labels as keys
from shared.model.kubernetes.pods import AffinityTerm, LabelSelector, Pod, Scheduling
from shared.model.kubernetes.volumes import CLAIM_LABEL, RESOLVED, attachable
from shared.model.resources import Resources


def resolve(
    volumes: Volumes,
    waiting: Sequence[Pod],
    standing: Sequence[Pod],
    limited: Collection[str] = (),
    *,
    leaving: Sequence[Pod] = (),
    promised: Collection[str] = (),
) -> tuple[tuple[Pod, ...], tuple[Pod, ...]]:
    """Return the pods with what their volumes require; pods with equal demands share one object.

    A volume takes one of its node's attachments, however many pods on the node use it. A volume
    that only a single node may attach keeps its pods together: kube-scheduler may place them on
    different nodes, where they never start. So pods that share such a claim are tied to each other
    (by a label that no other pod has), and the first pod on a node attaches it for all of them. A
    claim that many nodes may attach is counted for each pod, so the count is never too low; before
    it has a volume, its pods stay in one zone. Of a claim for a single pod, all other pods wait
    until that pod is deleted, as with kube-scheduler: a node bought earlier would be empty.

    Args:
        volumes: What the claims require.
        waiting: Pods without a node, in the order of their keys.
        standing: Pods with a node that stays.
        limited: Drivers whose attachments are counted; the others' volumes can be anywhere.
        leaving: Pods with a node that let their volumes go, but not before they have ended.
        promised: Uids of waiting pods that have a place on a machine in flight.
    """
    asked = {pod.uid: volumes.asked(pod) for pod in (*waiting, *standing)}
    ties = _ties(asked.values(), frozenset(limited))
    asked |= {pod.uid: volumes.asked(pod) for pod in leaving}
    placed_soon = (pod for pod in waiting if pod.uid in promised)
    holders = _holders(waiting, (*standing, *leaving, *placed_soon), asked)
    shared: dict[Scheduling, Scheduling] = {}
    resolved = []
    for pod in waiting:
        if not pod.scheduling.claims:
            resolved.append(pod)
            continue
        own = asked[pod.uid]
        attached, together = _attached(pod, own, frozenset(limited), ties)
        problems = (*own.problems, *_held(pod, own, holders))
        scheduling = placed(pod.scheduling, own.terms, attached, problems)
        terms = tuple(_together(pod, use, ties[use.claim]) for use in own.uses if use.claim in ties)
        if terms:
            scheduling = replace(scheduling, ties=terms, shared=together)
        scheduling = shared.setdefault(scheduling, scheduling)
        labels = _labels(pod, own, ties)
        resolved.append(replace(pod, scheduling=scheduling, labels=labels, ephemeral=()))
    marked = tuple(replace(pod, labels=_labels(pod, asked[pod.uid], ties)) for pod in standing)
    return tuple(resolved), marked


def placed(
    scheduling: Scheduling, terms: Terms, attached: Resources, problems: Iterable[str]
) -> Scheduling:
    """Return what a pod asks together with its volumes, its claims resolved.

    Args:
        scheduling: What it asks itself.
        terms: What its volumes ask of a node, OR-ed.
        attached: What its volumes take of a node's attachments.
        problems: What about its volumes keeps it from any node.
    """
    return replace(
        scheduling,
        requests=scheduling.requests + attached,
        volume_terms=(terms,) if terms else (),
        claims=RESOLVED,
        refusals=tuple(dict.fromkeys((*scheduling.refusals, *problems))),
    )


def _ties(asked: Iterable[Asked], limited: frozenset[str]) -> dict[str, str]:
    """Return, by shared claim, over which key its pods must be together."""
    uses = [use for asked in asked for use in asked.uses if use.driver in limited or not use.driver]
    numbers = Counter(use.claim for use in uses)
    found = {}
    for use in uses:
        if numbers[use.claim] > 1 and not use.one_pod:
            if use.driver and not use.many_nodes:
                found[use.claim] = keys.HOSTNAME
            elif not use.volume:
                found[use.claim] = keys.ZONE
    return found


def _holders(
    waiting: Iterable[Pod], standing: Iterable[Pod], asked: Mapping[str, Asked]
) -> dict[str, Pod]:
    """Return who has, or will be the first to have, each claim that is for a single pod."""
    able = (pod for pod in waiting if _comes(pod, asked[pod.uid]))
    first = sorted(able, key=lambda entry: (not entry.nominated_node, -entry.scheduling.priority))
    found: dict[str, Pod] = {}
    for pod in (*standing, *first):
        for use in asked[pod.uid].uses:
            if use.one_pod:
                found.setdefault(use.claim, pod)
    return found


def _held(pod: Pod, own: Asked, holders: Mapping[str, Pod]) -> list[str]:
    """Return why a pod waits for another one's claims."""
    return [
        f"volume: claim {use.claim} is for a single pod, and {holders[use.claim].key} has it"
        for use in own.uses
        if holders.get(use.claim, pod) is not pod
    ]


def _comes(pod: Pod, asked: Asked) -> bool:
    """Return whether a waiting pod may be placed, or is about to take a place."""
    if pod.nominated_node:
        return True
    return pod.is_provisionable and not pod.scheduling.refusals and not asked.problems


def _attached(
    pod: Pod, asked: Asked, limited: frozenset[str], ties: Mapping[str, str]
) -> tuple[Resources, tuple[tuple[str, str], ...]]:
    """Return what a pod takes of its node's attachments alone, and what together with others."""
    alone: Counter[str] = Counter()
    together = []
    for use in asked.uses:
        if use.driver not in limited:
            continue
        if ties.get(use.claim) == keys.HOSTNAME:
            volume = f"{pod.namespace}/{_label(use.claim).removeprefix(CLAIM_LABEL)}"
            together.append((volume, attachable(use.driver)))
        else:
            alone[attachable(use.driver)] += 1
    return Resources.from_mapping(alone), tuple(together)


def _together(pod: Pod, use: Use, key: str) -> AffinityTerm:
    selector = LabelSelector(match_labels=((_label(use.claim), ""),))
    return AffinityTerm(key=key, selector=selector, namespaces=(pod.namespace,))


def _labels(pod: Pod, asked: Asked, ties: Mapping[str, str]) -> Mapping[str, str]:
    own = {_label(use.claim): "" for use in asked.uses if use.claim in ties}
    return {**pod.labels, **own} if own else pod.labels


def _label(claim: str) -> str:
    return CLAIM_LABEL + claim.rpartition("/")[2]
