"""Topology keys in pods that no node has."""

from collections.abc import Iterator, Sequence

from shared.model import labels as keys
from shared.model.dollars_and_counts import first_names
from shared.model.kubernetes.pods import Scheduling
from shared.model.snapshot import ClusterSnapshot
from shared.planning.nearest_label import nearest_label
from shared.planning.rules.provisioner_offerings import free_requirements, place_labels


def unknown_topology_keys(snapshot: ClusterSnapshot) -> Iterator[str]:
    """Yield a message for each topology key of pending pods that no existing or new node has.

    kube-scheduler applies such a rule as written: anti-affinity then keeps no pods apart, affinity
    and DoNotSchedule leave no place.
    """
    users: dict[str, list[str]] = {}
    for pod in snapshot.pending:
        if pod.is_provisionable:
            for key in sorted({*_topology_keys(pod.scheduling)}):
                users.setdefault(key, []).append(pod.key)
    if not users:
        return
    known = _label_keys(snapshot)
    for key, pods in sorted(users.items()):
        if key not in known:
            yield _misspelt(key, pods, sorted(known))


def _misspelt(key: str, pods: Sequence[str], known: Sequence[str]) -> str:
    same_name = [other for other in known if other.rpartition("/")[2] == key.rpartition("/")[2]]
    meant = next(iter(same_name), "") or nearest_label(key, known)
    hint = f"; did you mean {meant}?" if meant else ""
    named = first_names(sorted(pods), 1)
    return f"topology key {key} of pod {named}: no node has such a label{hint}"


def _topology_keys(scheduling: Scheduling) -> Iterator[str]:
    yield from (spread.key for spread in scheduling.spreads)
    yield from (term.key for term in (*scheduling.affinity, *scheduling.anti_affinity))


def _label_keys(snapshot: ClusterSnapshot) -> set[str]:
    """Return the keys of labels that nodes have, or would have if they were launched."""
    found = {keys.HOSTNAME, keys.ZONE_ID}
    for node in snapshot.nodes:
        found.update(node.labels)
    for known in snapshot.instance_types:
        found.update(known.labels)
        for offering in known.offerings[:1]:
            found.update(place_labels(offering))
    for owner in snapshot.provisioners:
        found.update(owner.labels, (asked.key for asked in owner.requirements), {owner.owner_label})
        found.update(asked.key for asked in free_requirements(owner))
    return found
