"""Names in pods that match nothing: resources of no instance type, topology keys of no node."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from shared.model import labels as keys
from shared.model.dollars_and_counts import first_names
from shared.model.kubernetes.pods import Scheduling
from shared.model.snapshot import ClusterSnapshot
from shared.planning.nearest_label import nearest_label
from shared.planning.rules.provisioner_offerings import free_requirements, place_labels

_ELSEWHERE: Final = "run such pods on nodes that Dovetail does not launch"
# What a resource is, and what to do, by the prefix of its name.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/node-efa.html,
# https://docs.aws.amazon.com/eks/latest/userguide/security-groups-for-pods.html,
# https://kubernetes.io/docs/tasks/manage-hugepages/scheduling-hugepages/,
# https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-sharing.html,
# https://awsdocs-neuron.readthedocs-hosted.com/en/latest/containers/tutorials/k8s-neuron-device-plugin.html
# (2026-11).
_MEANINGS: Final = {
    "vpc.amazonaws.com/efa": (
        f"an EFA interface, with which Dovetail launches no machine: {_ELSEWHERE}"
    ),
    "vpc.amazonaws.com/pod-eni": (
        "an interface for security groups of pods: with ENABLE_POD_ENI of the VPC CNI, set "
        "pod_interfaces"
    ),
    "vpc.amazonaws.com/PrivateIPv4Address": (
        f"an address of a Windows node, which Dovetail does not launch: {_ELSEWHERE}"
    ),
    "hugepages-": (
        "huge pages, which a node has where its system reserves some: ask for memory, or "
        f"{_ELSEWHERE}"
    ),
    "nvidia.com/mig-": (
        "a part of a GPU (MIG), which a node has once its GPUs are divided: ask for "
        f"nvidia.com/gpu, or {_ELSEWHERE}"
    ),
    "nvidia.com/gpu.shared": (
        "a GPU in time slices by the name that renameByDefault gives: set that to false and ask "
        "for nvidia.com/gpu; each counts as a whole GPU"
    ),
    "aws.amazon.com/neurondevice": ("the former name of aws.amazon.com/neuron: ask for that"),
    "": f"a device plugin may show it on nodes that run: {_ELSEWHERE}, or leave it out",
}


def unknown_resources(names: Iterable[str]) -> str:
    """Return a message: no instance type has these resources, what they are, and what to do."""
    return "; ".join(f"no instance type has {name}: {_meaning(name)}" for name in names)


def _meaning(name: str) -> str:
    return next(text for start, text in _MEANINGS.items() if name.startswith(start))


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
