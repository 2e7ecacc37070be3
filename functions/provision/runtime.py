"""What provision works with: settings, adapters and its service of each cluster."""

import functools
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from aws_lambda_powertools.utilities.typing import LambdaContext

from shared.decisions.bases import DecisionWriter
from shared.disruption.settings import DisruptionSettings
from shared.messages.wake import Message
from shared.model.errors import AutoscalerError
from shared.model.policy import BindingPolicy, LaunchPolicy
from shared.packing.problem import PackingSettings
from shared.provisioning.provision import Provisioning
from shared.provisioning.wake_batch import ClusterWake, InvalidRecord
from shared.runtime.dead_letters import dead_letters
from shared.runtime.observability import count, logger
from shared.runtime.provisioning_wiring import ProvisioningWiring
from shared.runtime.system import environment, new_plan_id
from shared.runtime.wiring import Right
from shared.settings import ProvisionSettings

# After a failure that may pass: long enough not to hammer, short enough not to be noticed.
_PAUSE: Final = timedelta(seconds=10)
# What an invocation keeps of its time for its answer.
_RESERVE: Final = timedelta(seconds=10)


class Runtime:
    """What the provision function works with."""

    def __init__(self, settings: ProvisionSettings) -> None:
        self._wiring = ProvisioningWiring(settings, Right.LAUNCH)
        self._policy = LaunchPolicy(
            lease=settings.lease_span,
            batch_idle=timedelta(seconds=settings.batch_idle_seconds),
            batch_max=timedelta(seconds=settings.batch_max_seconds),
            registration=timedelta(seconds=settings.registration_seconds),
            binding=BindingPolicy(settings.binding_policy),
        )
        self._packing = PackingSettings(
            max_node_vcpus=settings.max_node_vcpus,
            max_launch_groups=settings.max_launch_groups,
            fewer_nodes_permille=settings.fewer_nodes_permille,
            preference_price_percent=settings.preference_price_percent,
        )
        self._disruption = DisruptionSettings(
            minimum_saving_percent=settings.minimum_saving_percent,
            minimum_saving_micros_per_hour=round(settings.minimum_saving_per_hour * 1_000_000),
            minimum_age=timedelta(seconds=settings.minimum_age_seconds),
            budget_percent=settings.disruption_budget_percent,
            window=timedelta(seconds=settings.disruption_window_seconds),
        )

        self._writer = DecisionWriter()

    def admits(self, message: Message) -> bool:
        """Return whether to serve a message of the fast lane, see `Wiring.admits`."""
        return self._wiring.admits(message)

    def service(self, cluster: str) -> Provisioning:
        """Return the service of one cluster."""
        return Provisioning(
            self._wiring.ports(cluster),
            self._policy,
            self._packing,
            new_plan_id,
            replace(self._disruption, drift=self._wiring.registry.one(cluster).drift),
            self._writer,
            brakes=functools.partial(self._wiring.registry.brakes, cluster),
        )

    def deadline(self, context: LambdaContext) -> datetime:
        """Return when this invocation is ended from outside."""
        left = timedelta(milliseconds=context.get_remaining_time_in_millis())
        return self._wiring.clock.now() + left

    def plan_alone(self, wake: ClusterWake) -> None:
        """Call provision for one cluster, without waiting for its answer.

        Raises:
            NotAttachedError: If no such cluster is attached.
            RetryableError: If the call cannot be made now.
        """
        self._wiring.registry.one(wake.cluster)
        self._wiring.outbox.invoke_provision(
            wake.cluster, look=wake.look, changed=wake.provisioners_changed
        )

    def wake_later(self, cluster: str, delay: timedelta | None, *, look: bool = False) -> bool:
        """Send a message that plans for a cluster after a pause; return whether that worked.

        Such a message arrives in seconds; a failed record only after its visibility time-out.
        """
        send = self._wiring.outbox.look if look else self._wiring.outbox.wake
        try:
            send(cluster, delay or _PAUSE)
        except AutoscalerError as error:
            logger.warning("cannot send a message", cluster=cluster, error=str(error))
            return False
        return True

    def set_aside(self, records: Sequence[InvalidRecord], context: LambdaContext) -> list[str]:
        """Put records into the queue of dead letters; return the ids of those that stay.

        A record that cannot be put aside, or not in time, comes again.
        """
        for reason, number in sorted(Counter(record.reason for record in records).items()):
            logger.error("records put aside", reason=reason, number=number)
        count("DeadLetters", len(records))
        until = self.deadline(context) - _RESERVE
        refused = dead_letters(
            [(record.text, record.reason) for record in records],
            in_time=lambda: self._wiring.clock.now() < until,
        )
        return [records[position].record_id for position in refused]


@functools.cache
def load_runtime() -> Runtime:
    """Return the runtime of this process, made when first asked for."""
    return Runtime(ProvisionSettings.from_environment(environment()))
