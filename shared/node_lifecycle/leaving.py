"""Asking the pods of a node that goes to leave, and what the API server answers for each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from shared.disruption.drain import DrainStep, grace_left
from shared.disruption.eviction_blockers import budgets_of
from shared.model.errors import (
    AutoscalerError,
    CertificateError,
    EvictionRefusedError,
    RetryableError,
)
from shared.model.kubernetes.pods import Pod
from shared.node_lifecycle.force_deletion import LONGEST_REASON
from shared.ports import NodePorts


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the API server answered for each pod that was asked to leave.

    Attributes:
        leaving: Pods that leave now.
        refused: Pods that may not leave, with what holds them: budgets, or a refusal for good.
        failed: Pods for which the same call may succeed later, with its error.
    """

    leaving: tuple[Pod, ...]
    refused: Mapping[Pod, str]
    failed: Mapping[Pod, RetryableError]

    @property
    def staying(self) -> dict[Pod, str]:
        """Pods that do not leave now, with why."""
        return {**self.refused, **{pod: _text_of(error) for pod, error in self.failed.items()}}

    def raise_if_all_failed(self) -> None:
        """Raise the first error if there was no answer for any pod."""
        if self.failed and not self.leaving and not self.refused:
            raise next(iter(self.failed.values()))


def ask_to_leave(
    ports: NodePorts, step: DrainStep, ends_at: datetime | None, now: datetime
) -> Asked:
    """Delete and evict the pods of a step; what happens for one pod must not keep the others.

    Deletions come first and several at a time: these pods have little time left, and a call whose
    admission webhook hangs takes many seconds.

    Args:
        ends_at: When the node ends, whatever is on it; None for when it is drained.

    Raises:
        CertificateError: If the server's certificate is not valid for it.
        RetryableError: If an eviction was refused and the budgets cannot be read.
    """

    def delete(pod: Pod) -> None:
        ports.cluster.delete_pod(pod, None if ends_at is None else grace_left(pod, ends_at, now))

    deleted = ports.crew.each(lambda pod: _error_of(delete, pod), step.delete)
    answers = dict(zip(step.delete, deleted, strict=True))
    answers |= {pod: _error_of(ports.cluster.evict, pod) for pod in step.evict}
    errors = {pod: error for pod, error in answers.items() if error is not None}
    held = [pod for pod, error in errors.items() if isinstance(error, EvictionRefusedError)]
    failed = {
        pod: error
        for pod, error in errors.items()
        if isinstance(error, RetryableError) and pod not in held
    }
    refused = {pod: _text_of(error) for pod, error in errors.items() if pod not in failed}
    return Asked(
        leaving=tuple(pod for pod in answers if pod not in errors),
        refused={**refused, **_budgets_of(ports, held)},
        failed=failed,
    )


def _error_of(leave: Callable[[Pod], None], pod: Pod) -> AutoscalerError | None:
    """Ask a pod to leave; return why it does not."""
    try:
        leave(pod)
    except CertificateError:
        raise
    except AutoscalerError as error:
        return error
    return None


def _budgets_of(ports: NodePorts, refused: Sequence[Pod]) -> dict[Pod, str]:
    """Return the budgets that hold pods back, for people."""
    budgets = ports.cluster.disruption_budgets() if refused else ()
    return {pod: budgets_of(pod, budgets) for pod in refused}


def _text_of(error: AutoscalerError) -> str:
    return str(error)[:LONGEST_REASON]
