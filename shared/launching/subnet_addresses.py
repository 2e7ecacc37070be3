"""Which subnet of a zone has the most room, with what launches in flight will take of it."""

from collections import Counter
from collections.abc import Iterable, Mapping

from shared.model.ec2.launches import LaunchOption
from shared.model.resources import PODS
from shared.ports import Subnet
from shared.snapshot.launch_body import LaunchBody


class AddressBook:
    """Addresses promised to launches that EC2 may not have counted yet, of one invocation.

    EC2 chooses among the subnets of a request, so each of them is taken to give all that is asked
    for: too much rather than too little.
    """

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._promised: Counter[str] = Counter()

    def note(self, body: LaunchBody) -> None:
        """Count what the machines of an attempt will take; the same attempt counts once."""
        if body.attempt.key in self._seen:
            return
        self._seen.add(body.attempt.key)
        wanted = len(body.attempt.slots) * _addresses(body.attempt.options)
        named = {
            override["SubnetId"]
            for config in body.request["LaunchTemplateConfigs"]
            for override in config["Overrides"]
        }
        self._promised.update(dict.fromkeys(sorted(named), wanted))

    def roomiest(self, subnets: Iterable[Subnet]) -> Mapping[str, str]:
        """Return for each zone the subnet with most addresses left, then of the smallest id."""
        found: dict[str, Subnet] = {}
        for other_subnet in sorted(
            subnets, key=lambda subnet: (-self._left(subnet), subnet.subnet_id)
        ):
            found.setdefault(other_subnet.zone, other_subnet)
        return {zone: subnet.subnet_id for zone, subnet in found.items()}

    def _left(self, subnet: Subnet) -> int:
        return subnet.free_addresses - self._promised[subnet.subnet_id]


def _addresses(options: Iterable[LaunchOption]) -> int:
    """Return the fewest addresses a machine may come to need: one for each pod, one at least."""
    return max(1, min(option.capacity[PODS] for option in options))
