"""Manifests and the plans for them: with the pods of Jobs, and without them."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from functions.cli.plan.job_pods import JOB_KINDS, is_of_job
from functions.cli.plan.reading.documents import Document
from shared.model.plan import Plan
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace


class Planned(Struct, frozen=True, kw_only=True):
    """Manifests as a cluster, and the plans for them.

    Attributes:
        plan: The plan for all pods, those of one run of each CronJob included.
        always: The plan for what runs always, without the pods of Jobs; None if these take no new
            node.
        jobs: The Jobs and CronJobs among the manifests.
    """

    snapshot: ClusterSnapshot
    plan: Plan
    always: Plan | None = None
    jobs: tuple[Document, ...] = ()

    @property
    def cost_without_jobs(self) -> int:
        """Cost of the nodes for what runs always, in micro-dollars per hour."""
        whole = self.plan.cost_micros_per_hour
        return whole if self.always is None else min(self.always.cost_micros_per_hour, whole)


def planned(
    snapshot: ClusterSnapshot,
    documents: Sequence[Document],
    plan: Plan,
    decided: Callable[[ClusterSnapshot], Plan],
) -> Planned:
    """Return a plan beside the one for what runs always.

    Args:
        documents: The manifests that the snapshot was read from.
        decided: Returns the plan for a snapshot.
    """
    rest = tuple(pod for pod in snapshot.pending if not is_of_job(pod))
    launched = {ref.uid for node in plan.nodes for ref in node.pods}
    costly = any(is_of_job(pod) and pod.uid in launched for pod in snapshot.pending)
    return Planned(
        snapshot=snapshot,
        plan=plan,
        always=decided(replace(snapshot, pending=rest)) if costly else None,
        jobs=tuple(document for document in documents if document.kind in JOB_KINDS),
    )
