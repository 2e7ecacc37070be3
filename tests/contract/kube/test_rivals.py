"""Other autoscalers are seen by the leases their leaders renew."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, cast

import pytest

from shared.kube.calls import KubeApi, Reply
from shared.kube.rivals import LEASES_PATH, KubeRivals
from shared.ports import NoRivals, Rival, RivalKind
from tests.fakes.clock import FakeClock

KARPENTER = "karpenter-leader-election"


class Api:
    """Answers lists of leases by name."""

    def __init__(self, *leases: Mapping[str, Any]) -> None:
        self.leases = leases
        self.asked: list[str] = []

    def send(self, method: str, path: str, *, query: Any = ()) -> Reply:
        assert (method, path) == ("GET", LEASES_PATH)
        selector = dict(query)["fieldSelector"]
        self.asked.append(selector)
        name = selector.removeprefix("metadata.name=")
        found = [one for one in self.leases if one["metadata"]["name"] == name]
        return Reply(status=200, body={"items": found})


def lease(clock: FakeClock, name: str = KARPENTER, **spec: Any) -> dict[str, Any]:
    renewed = clock.now().isoformat().replace("+00:00", ".123456Z")
    given = {"holderIdentity": "pod-1", "renewTime": renewed, **spec}
    return {"metadata": {"name": name, "namespace": "kube-system"}, "spec": given}


def rivals(api: Api, clock: FakeClock) -> KubeRivals:
    return KubeRivals(cast("KubeApi", api), clock.now)


def test_a_leader_that_renews_its_lease_is_running() -> None:
    clock = FakeClock()
    api = Api(lease(clock), lease(clock, "cluster-autoscaler"), lease(clock, "other"))
    found = rivals(api, clock).running()
    assert found == (
        Rival(
            kind=RivalKind.CLUSTER_AUTOSCALER,
            where="kube-system/cluster-autoscaler",
            holder="pod-1",
        ),
        Rival(kind=RivalKind.KARPENTER, where=f"kube-system/{KARPENTER}", holder="pod-1"),
    )


@pytest.mark.parametrize(
    "spec", [{"holderIdentity": ""}, {"renewTime": None}, {"renewTime": "yesterday"}]
)
def test_a_lease_nobody_holds_or_renews_is_no_rival(spec: dict[str, Any]) -> None:
    clock = FakeClock()
    assert rivals(Api(lease(clock, **spec)), clock).running() == ()


def test_a_leader_that_fell_silent_is_gone_and_answers_are_half_a_minute_old_at_most() -> None:
    clock = FakeClock()
    api = Api(lease(clock))
    seen = rivals(api, clock)
    assert len(seen.running()) == 1
    clock.advance(timedelta(seconds=29))
    assert len(seen.running()) == 1
    assert len(api.asked) == 2
    clock.advance(timedelta(minutes=2))
    assert seen.running() == ()
    assert len(api.asked) == 4
    assert NoRivals().running() == ()
