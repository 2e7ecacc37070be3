"""Adds what volumes require of nodes to the scheduling constraints of their pods."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from shared.manifests.volumes.node_demands import Terms, VolumeDemands, VolumeLookup, VolumeUse
from shared.model import labels as keys
from shared.model.kubernetes.pods import AffinityTerm, LabelSelector, Pod, Scheduling
from shared.model.kubernetes.volumes import CLAIM_LABEL, RESOLVED, attachable
from shared.model.resources import Resources
from shared.model.values import replace


def with_volume_demands(
    volumes: VolumeLookup,
    waiting: Sequence[Pod],
    standing: Sequence[Pod],
    limited: Collection[str] = (),
    *,
    leaving: Sequence[Pod] = (),
    promised: Collection[str] = (),
) -> tuple[tuple[Pod, ...], tuple[Pod, ...]]:
    """Return the pods with what their volumes require; pods with equal demands share one object.

    A volume takes one of its node's attachments, however many pods on the node use it. A volume
    that only a single node may attach keeps its pods together: kube-scheduler does not, and pods
    that it places on another node never start. So pods that share such a claim are tied to each
    other (by a label that no other pod has), and the first pod on a node attaches it for all. A
    claim that many nodes may attach is counted for each pod, so the count is never too low; before
    it has a volume, its pods stay in one zone. Pods wait for a claim with ReadWriteOncePod while
    another pod uses it, as with kube-scheduler: a node launched for them would be empty.

    Args:
        volumes: Looks up what the claims require.
        waiting: Pods without a node, in the order of their keys.
        standing: Bound pods that keep their volumes attached.
        limited: Drivers whose attachments to a node are counted; volumes of other drivers limit
            nothing.
        leaving: Bound pods whose volumes are detached, but not before the pods have ended.
        promised: Uids of waiting pods that are promised to an instance in flight.
    """
    demands = {pod.uid: volumes.demands_of(pod) for pod in (*waiting, *standing)}
    ties = _ties(demands.values(), frozenset(limited))
    demands |= {pod.uid: volumes.demands_of(pod) for pod in leaving}
    placed_soon = (pod for pod in waiting if pod.uid in promised)
    holders = _holders(waiting, (*standing, *leaving, *placed_soon), demands)
    shared: dict[Scheduling, Scheduling] = {}
    resolved = []
    for pod in waiting:
        if not pod.scheduling.claims:
            resolved.append(pod)
            continue
        own = demands[pod.uid]
        attached, together = _attached(pod, own, frozenset(limited), ties)
        problems = (*own.problems, *_waits_for(pod, own, holders))
        scheduling = with_claims_resolved(pod.scheduling, own.terms, attached, problems)
        terms = tuple(_together(pod, use, ties[use.claim]) for use in own.uses if use.claim in ties)
        if terms:
            scheduling = replace(scheduling, ties=terms, shared=together)
        scheduling = shared.setdefault(scheduling, scheduling)
        labels = _labels(pod, own, ties)
        resolved.append(replace(pod, scheduling=scheduling, labels=labels, ephemeral=()))
    marked = tuple(replace(pod, labels=_labels(pod, demands[pod.uid], ties)) for pod in standing)
    return tuple(resolved), marked


def with_claims_resolved(
    scheduling: Scheduling, terms: Terms, attached: Resources, problems: Iterable[str]
) -> Scheduling:
    """Return the scheduling constraints of a pod and its volumes, its claims resolved.

    Args:
        scheduling: The constraints of the pod itself.
        terms: What its volumes require of a node, OR-ed.
        attached: The attachments that its volumes use on a node.
        problems: Why no node is suitable for its volumes.
    """
    return replace(
        scheduling,
        requests=scheduling.requests + attached,
        volume_terms=(terms,) if terms else (),
        claims=RESOLVED,
        refusals=tuple(dict.fromkeys((*scheduling.refusals, *problems))),
    )


def _ties(demands: Iterable[VolumeDemands], limited: frozenset[str]) -> dict[str, str]:
    """Return, by shared claim, the topology key of the domain that its pods must share."""
    uses = [
        use
        for pod_demands in demands
        for use in pod_demands.uses
        if use.driver in limited or not use.driver
    ]
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
    waiting: Iterable[Pod], standing: Iterable[Pod], demands: Mapping[str, VolumeDemands]
) -> dict[str, Pod]:
    """Return, for each ReadWriteOncePod claim, the pod that uses it now or will use it first."""
    able = (pod for pod in waiting if _may_be_placed(pod, demands[pod.uid]))
    first = sorted(able, key=lambda entry: (not entry.nominated_node, -entry.scheduling.priority))
    found: dict[str, Pod] = {}
    for pod in (*standing, *first):
        for use in demands[pod.uid].uses:
            if use.one_pod:
                found.setdefault(use.claim, pod)
    return found


def _waits_for(pod: Pod, own: VolumeDemands, holders: Mapping[str, Pod]) -> list[str]:
    """Return why a pod waits for claims of other pods."""
    return [
        f"volume: claim {use.claim} is for a single pod, and {holders[use.claim].key} has it"
        for use in own.uses
        if holders.get(use.claim, pod) is not pod
    ]


def _may_be_placed(pod: Pod, demands: VolumeDemands) -> bool:
    """Return whether a waiting pod may be placed, or is nominated to a node."""
    if pod.nominated_node:
        return True
    return pod.is_provisionable and not pod.scheduling.refusals and not demands.problems


def _attached(
    pod: Pod, demands: VolumeDemands, limited: frozenset[str], ties: Mapping[str, str]
) -> tuple[Resources, tuple[tuple[str, str], ...]]:
    """Return the attachments that a pod uses alone, and those it shares with other pods."""
    alone: Counter[str] = Counter()
    together = []
    for use in demands.uses:
        if use.driver not in limited:
            continue
        if ties.get(use.claim) == keys.HOSTNAME:
            volume = f"{pod.namespace}/{_label(use.claim).removeprefix(CLAIM_LABEL)}"
            together.append((volume, attachable(use.driver)))
        else:
            alone[attachable(use.driver)] += 1
    return Resources.from_mapping(alone), tuple(together)


def _together(pod: Pod, use: VolumeUse, key: str) -> AffinityTerm:
    selector = LabelSelector(match_labels=((_label(use.claim), ""),))
    return AffinityTerm(key=key, selector=selector, namespaces=(pod.namespace,))


def _labels(pod: Pod, demands: VolumeDemands, ties: Mapping[str, str]) -> Mapping[str, str]:
    own = {_label(use.claim): "" for use in demands.uses if use.claim in ties}
    return {**pod.labels, **own} if own else pod.labels


def _label(claim: str) -> str:
    return CLAIM_LABEL + claim.rpartition("/")[2]
