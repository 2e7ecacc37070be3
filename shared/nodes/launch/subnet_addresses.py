"""Which subnet of a zone has the most free addresses, after launches in flight."""

from collections import Counter
from collections.abc import Iterable, Mapping

from shared.model.ec2.launches import LaunchOption
from shared.model.resources import PODS
from shared.ports import Subnet
from shared.snapshot.launch_body import LaunchBody


class AddressReservations:
    """Addresses reserved for launches of one invocation that EC2 may not have counted yet.

    EC2 chooses among the subnets of a request, so each of them is charged with the whole request:
    too much rather than too little.
    """

    def __init__(self) -> None:
        self._reserved_attempts: set[str] = set()
        self._reserved: Counter[str] = Counter()

    def reserve(self, body: LaunchBody) -> None:
        """Reserve the addresses of an attempt's instances; the same attempt counts once."""
        if body.attempt.key in self._reserved_attempts:
            return
        self._reserved_attempts.add(body.attempt.key)
        wanted = len(body.attempt.slots) * _addresses(body.attempt.options)
        named = {
            override["SubnetId"]
            for config in body.request["LaunchTemplateConfigs"]
            for override in config["Overrides"]
        }
        self._reserved.update(dict.fromkeys(sorted(named), wanted))

    def freest_subnets(self, subnets: Iterable[Subnet]) -> Mapping[str, str]:
        """Return each zone's subnet with the most addresses left; of equals, the smallest ID."""
        found: dict[str, Subnet] = {}
        for candidate in sorted(
            subnets, key=lambda subnet: (-self._left(subnet), subnet.subnet_id)
        ):
            found.setdefault(candidate.zone, candidate)
        return {zone: subnet.subnet_id for zone, subnet in found.items()}

    def _left(self, subnet: Subnet) -> int:
        return subnet.free_addresses - self._reserved[subnet.subnet_id]


def _addresses(options: Iterable[LaunchOption]) -> int:
    """Return the fewest addresses that an instance may need: one for each pod, at least one."""
    return max(1, min(option.capacity[PODS] for option in options))
