"""The taints of a new node."""

from collections.abc import Iterable
from typing import Final

from shared.model import labels as keys
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.provisioner import Provisioner

_UNINITIALIZED: Final = Taint(
    key=keys.CLOUD_UNINITIALIZED_TAINT, value="true", effect=Effect.NO_SCHEDULE
)


def kubelet_taints(provisioner: Provisioner) -> tuple[Taint, ...]:
    """Return the taints in user data that the kubelet registers its Node with, sorted.

    The taint of an external cloud provider is left out, also where the user names it: the kubelet
    adds it itself, and the API server refuses a Node that has it twice.

    Source: https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/kubelet/kubelet_node_status.go
    (initialNode) and .../pkg/apis/core/validation/validation.go (validateNodeTaints), 2026-11-22.
    """
    return _unique((*_asked(provisioner), provisioner.dialect.registering_taint))


def node_taints(provisioner: Provisioner) -> tuple[Taint, ...]:
    """Return the taints of the Node object that is created for an instance, sorted.

    Its own taints, the closing taint, and the taint that makes the cloud controller initialize it.
    """
    closing = provisioner.dialect.closing_taint
    return _unique((*_asked(provisioner), closing, _UNINITIALIZED))


def _asked(provisioner: Provisioner) -> tuple[Taint, ...]:
    wanted = (*provisioner.taints, *provisioner.startup_taints)
    return tuple(taint for taint in wanted if taint.key != keys.CLOUD_UNINITIALIZED_TAINT)


def _unique(taints: Iterable[Taint]) -> tuple[Taint, ...]:
    """Return the taints, sorted; of several with the same key and effect the first."""
    found: dict[tuple[str, Effect], Taint] = {}
    for taint in taints:
        found.setdefault((taint.key, taint.effect), taint)
    return tuple(sorted(found.values()))
