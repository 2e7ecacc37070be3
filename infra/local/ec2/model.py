"""EC2 of one account and Region: what all its clusters share."""

import itertools
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from infra.local.ec2.account import Account, Launch
from infra.local.ec2.allocation import Allotment, Candidate, allot
from infra.local.ec2.instances import (
    ENDING,
    USER_REASON,
    Addresses,
    Instance,
    Settings,
    Step,
    shown,
)
from infra.local.ec2.pools import ON_DEMAND, SPOT, Pools, QuotaKey, Stock, quota_family, vcpus_left
from infra.local.ec2.refusals import ApiError, Reason, Refusal, refusal
from infra.local.ec2.request import FleetRequest, candidates, read_request

_NOW: Final = timedelta(0)


class Replay(StrEnum):
    """What EC2 says to a ClientToken it has seen."""

    SAME = "the same instances"
    PART = "only the first part"
    MISMATCH = "IdempotentParameterMismatch"
    FORGOTTEN = "a second fleet once the token is forgotten"


@dataclass(frozen=True, slots=True)
class _Answered:
    body: Any
    answer: Any
    at: datetime


class Ec2:
    """Fleets and instances in memory; nothing happens between two calls.

    Attributes:
        instances: By instance id, all there ever were, in launch order.
        changed: Called with each instance and the states it enters now and later.
        replay: What a known ClientToken is answered.
        token_life: How long a ClientToken is known, None for ever.
    """

    def __init__(
        self,
        now: Callable[[], datetime],
        *,
        settings: Settings | None = None,
        changed: Callable[[Instance, list[Step]], None] = lambda _instance, _steps: None,
    ) -> None:
        self.now = now
        self.settings = settings or Settings()
        self.changed = changed
        self.replay = Replay.SAME
        self.token_life: timedelta | None = None
        self.pools = Pools()
        self.addresses = Addresses()
        self.instances: dict[str, Instance] = {}
        self._answers: dict[Any, _Answered] = {}
        self._fleets = itertools.count(1)

    def once(self, token: Any, body: Any, act: Callable[[], Any]) -> Any:
        """Do something once for each ClientToken; later calls get the answer of the first."""
        if not token:
            return act()
        kept = self._answers.get(token)
        if kept is None or (
            self.token_life is not None and self.now() - kept.at >= self.token_life
        ):
            self._answers[token] = kept = _Answered(body, act(), self.now())
            return kept.answer
        if kept.body != body or self.replay is Replay.MISMATCH:
            raise ApiError(
                "IdempotentParameterMismatch",
                "The client token you have provided was used before with different parameters.",
            )
        return _first_part(kept.answer) if self.replay is Replay.PART else kept.answer

    def forget(self, token: Any) -> None:
        """Answer a ClientToken anew when it comes again."""
        self._answers.pop(token, None)

    def create_fleet(self, account: Account, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to CreateFleet of type instant: FleetId, Instances and Errors.

        Errors has the refused options, in order of trying; the other options are launched.
        """
        now = self.now()
        request = read_request(account, parameters)
        self.pools.expire(now)
        stock = self._stock(account, request)
        allotments = [
            (kind, allot(candidates(request, kind, account, now), request.terms[kind], stock))
            for kind in (ON_DEMAND, SPOT)
        ]
        self.pools.rules.update(stock.pools.rules)
        fleet_id = f"fleet-{next(self._fleets):017x}"
        answer: dict[str, Any] = {"FleetId": fleet_id, "Errors": [], "Instances": []}
        for kind, allotment in allotments:
            for candidate, count in allotment.launches:
                ids = self._launch(account, request, fleet_id, candidate, count)
                row = {**_row(request, candidate, kind), "InstanceIds": ids}
                answer["Instances"].append({**row, "InstanceType": candidate.instance_type})
            for candidate, reason in allotment.refusals:
                answer["Errors"].append({**_row(request, candidate, kind), **_error(reason)})
            if kind == SPOT and not allotment.launches:
                answer["Errors"] += _unfulfilled(request, allotment)
        return answer

    def admit(self, instance: Instance, fate: Reason | None = None) -> None:
        """Let an instance exist from now on; with a fate it ends while it is pending."""
        now, settings = instance.launched_at, self.settings
        steps = [(_NOW, "pending"), (settings.running, "running")]
        if fate is not None:
            instance.reason = fate
            steps[1:] = [
                (settings.running, "shutting-down"),
                (settings.running + settings.terminated, "terminated"),
            ]
        self.instances[instance.instance_id] = instance
        added = instance.enter(now, *steps)
        if fate is not None:
            self._release(instance)
        self.changed(instance, added)

    def terminate(self, instance: Instance, reason: Reason = USER_REASON) -> None:
        """Start to terminate an instance; one that is ending already goes on."""
        now = self.now()
        if instance.state(now) in ENDING:
            return
        failed = instance.steps[-1].state == "terminated"
        end = (self.settings.terminated, "terminated")
        added = instance.enter(now, (_NOW, "shutting-down"), end)
        if not failed:
            instance.reason = reason
            self._release(instance)
        self.changed(instance, added)

    def stop(self, instance: Instance, reason: Reason = USER_REASON) -> None:
        """Stop an instance, as an operator does; nothing happens when it is not running."""
        now = self.now()
        if instance.state(now) not in ("pending", "running"):
            return
        instance.reason = reason
        end = (self.settings.stopped, "stopped")
        self.changed(instance, instance.enter(now, (_NOW, "stopping"), end))

    def shows(self, instance: Instance) -> bool:
        return shown(instance, self.settings.hidden, self.now())

    def name_of(self, instance: Instance) -> str:
        now = self.now()
        named = now - instance.launched_at >= self.settings.named
        return instance.private_dns_name if named and instance.state(now) != "terminated" else ""

    def _release(self, instance: Instance) -> None:
        if instance.address:
            self.addresses.release(instance.subnet_id, instance.address, instance.steps[-1].at)

    def _launch(
        self,
        account: Account,
        request: FleetRequest,
        fleet_id: str,
        candidate: Candidate,
        count: int,
    ) -> list[str]:
        launch = Launch(
            option=request.options[candidate.index],
            pool=candidate.pool,
            count=count,
            fleet_id=fleet_id,
            request_tags=request.tags,
        )
        return list(account.launch(launch))

    def _stock(self, account: Account, request: FleetRequest) -> Stock:
        """Return what can be launched now: a copy, so that a fleet that fails uses nothing."""
        places = (
            account.place(option) for option in sorted({o.subnet_id for o in request.options})
        )
        used: Counter[QuotaKey] = Counter()
        if self.pools.vcpu_quota:
            now = self.now()
            for instance in self.instances.values():
                if instance.state(now) not in ENDING:
                    used[instance.pool[2], quota_family(instance.pool[0])] += instance.vcpus
        return Stock(
            pools=Pools(rules=dict(self.pools.rules)),
            addresses={place.subnet_id: place.free_addresses for place in places if place},
            vcpus_left=vcpus_left(self.pools.vcpu_quota, used),
        )


def _row(request: FleetRequest, candidate: Candidate, kind: str) -> dict[str, Any]:
    option = request.options[candidate.index]
    return {"LaunchTemplateAndOverrides": option.described(), "Lifecycle": kind}


def _unfulfilled(request: FleetRequest, allotment: Allotment) -> list[dict[str, Any]]:
    """Return the error that EC2 adds where every spot option was refused for the request itself.

    Which options it names is not known; here it is one of them.
    Source: https://github.com/aws/karpenter-provider-aws/issues/3051 (2022-12).
    """
    codes = {reason.code for _, reason in allotment.refusals}
    if codes != {"InvalidParameterValue"}:
        return []
    candidate, _ = allotment.refusals[-1]
    return [{**_row(request, candidate, SPOT), **_error(refusal("UnfulfillableCapacity"))}]


def _error(reason: Refusal) -> dict[str, str]:
    return {"ErrorCode": reason.code, "ErrorMessage": reason.message}


def _first_part(answer: Mapping[str, Any]) -> dict[str, Any]:
    rows = [{**row, "InstanceIds": row["InstanceIds"][:1]} for row in answer["Instances"][:1]]
    return {**answer, "Instances": rows}
