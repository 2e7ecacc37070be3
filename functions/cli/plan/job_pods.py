"""Pods of Jobs, which end."""

from typing import Final

from shared.model.kubernetes.pods import Pod

JOB_KINDS: Final = frozenset({"CronJob", "Job"})


def is_of_job(pod: Pod) -> bool:
    """Return whether a pod ends: its controller is a Job, or the Job of a CronJob."""
    return pod.owner is not None and pod.owner.kind in JOB_KINDS
