"""A hash of the input of consolidation: the same hash, the same result."""

import hashlib
from collections.abc import Iterator

from shared.disruption.candidates import is_young
from shared.disruption.evaluation import DisruptionInput, allowances_in
from shared.model import labels as keys

_SEEN: tuple[str, ...] = (keys.REPLACES, *keys.NODE_BLOCKING_ANNOTATIONS)


def fingerprint(disruption_input: DisruptionInput) -> str:
    """Return a hash of all that may change what consolidation finds, except prices and time.

    Time counts where it makes a pod old enough; prices change twice a day, and an evaluation that
    was skipped is made up for within minutes.
    """
    digest = hashlib.sha256()
    for line in _lines(disruption_input):
        digest.update(line.encode())
        digest.update(b"\n")
    return digest.hexdigest()


def _lines(disruption_input: DisruptionInput) -> Iterator[str]:
    snapshot, settings = disruption_input.snapshot, disruption_input.settings
    for node in snapshot.nodes:
        marks = tuple(node.annotations.get(key) for key in _SEEN)
        state = (node.unschedulable, node.deletion_at is not None, node.is_initialized)
        yield repr((node.uid, marks, state, node.allocatable.items))
    for pod in snapshot.bound:
        yield repr(
            (
                pod.uid,
                pod.node_name,
                pod.is_terminating,
                pod.blocking_annotation_at(snapshot.taken_at),
                is_young(pod, settings.minimum_pod_age, snapshot.taken_at),
            )
        )
    for waiting in snapshot.pending:
        yield repr((waiting.uid, waiting.resource_version))
    for owner in snapshot.provisioners:
        yield repr((owner.uid, owner.resource_version, owner.paused, owner.shadow))
    for budget in disruption_input.budgets:
        yield repr((budget.namespace, budget.name, budget.disruptions_allowed))
    yield repr(sorted(disruption_input.recently_changed))
    left = allowances_in(disruption_input).left
    yield repr(sorted((owner, str(reason), most) for (owner, reason), most in left.items()))
    yield repr(
        (sorted(disruption_input.snapshot.unavailable), sorted(disruption_input.skipped_spot_pools))
    )
    yield repr(
        (
            sorted(disruption_input.ongoing.running),
            sorted(disruption_input.ongoing.rested),
            repr(settings),
        )
    )
