"""Detects other autoscalers of the cluster by the leases that their leaders hold.

Source: karpenter-leader-election and cluster-autoscaler are the default names of these leases,
https://github.com/kubernetes-sigs/karpenter and https://github.com/kubernetes/autoscaler (2026-08).
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from typing_extensions import override

from shared.kube.api import KubeApi, path_to
from shared.kube.lists import list_all
from shared.manifests.raw_json import mapping, text, timestamp
from shared.ports import Rival, RivalKind, Rivals

_NAMES: Final = {
    "karpenter-leader-election": RivalKind.KARPENTER,
    "cluster-autoscaler": RivalKind.CLUSTER_AUTOSCALER,
}
# Leaders renew every few seconds; a lease that was not renewed for so long is dead.
_SILENT: Final = timedelta(minutes=2)
# How far the leader's clock may be ahead. A later time would keep a dead lease alive.
_SKEW: Final = timedelta(minutes=1)
# How long an answer is cached: a burst of plans reads the leases once.
_SPAN: Final = timedelta(seconds=30)


class KubeRivals(Rivals):
    """Implements shared.ports.Rivals on one API server; caches its answer for half a minute.

    Args:
        namespaces: The namespaces whose leases of autoscalers are trusted. In other namespaces the
            default ClusterRole `edit` lets tenants write leases of any name.
    """

    def __init__(
        self, api: KubeApi, now: Callable[[], datetime], namespaces: Sequence[str]
    ) -> None:
        self._api = api
        self._now = now
        self._namespaces = tuple(namespaces)
        self._answer: tuple[Rival, ...] = ()
        self._asked_at: datetime | None = None

    @override
    def running(self) -> tuple[Rival, ...]:
        now = self._now()
        if self._asked_at is None or now - self._asked_at >= _SPAN:
            found = [
                rival
                for namespace in self._namespaces
                for name in _NAMES
                for rival in self._holders(namespace, name, now)
            ]
            self._answer, self._asked_at = tuple(sorted(found)), now
        return self._answer

    def _holders(self, namespace: str, name: str, now: datetime) -> list[Rival]:
        path = path_to("/apis/coordination.k8s.io/v1/namespaces", namespace, "leases")
        query = (("fieldSelector", f"metadata.name={name}"),)
        leases = list_all(self._api, path, lambda raw: raw, query)
        return [
            _rival(lease_object, _NAMES[name])
            for lease_object in leases
            if is_lease_held(lease_object, name, now)
        ]


def is_lease_held(raw: Mapping[str, Any], name: str, now: datetime) -> bool:
    """Return whether a lease has that name and a holder that has recently renewed it."""
    spec = mapping(raw.get("spec"))
    if text(mapping(raw.get("metadata")).get("name")) != name or not spec.get("holderIdentity"):
        return False
    renewed = timestamp(spec.get("renewTime"))
    return renewed is not None and -_SKEW <= now - renewed < _SILENT


def _rival(raw: Mapping[str, Any], kind: RivalKind) -> Rival:
    metadata, spec = mapping(raw.get("metadata")), mapping(raw.get("spec"))
    where = f"{text(metadata.get('namespace'))}/{text(metadata.get('name'))}"
    return Rival(kind=kind, where=where, holder=text(spec.get("holderIdentity")))
