"""The runtime of the provision function: settings, adapters and one service per cluster."""

import functools
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from aws_lambda_powertools.utilities.typing import LambdaContext

from shared.disruption.settings import DisruptionSettings
from shared.model.errors import AutoscalerError
from shared.model.messages.message import Message
from shared.model.policy import BindingPolicy, LaunchPolicy
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from shared.provisioning.cluster_wakes import ClusterWake, InvalidRecord
from shared.provisioning.decisions.bases import DecisionWriter
from shared.provisioning.provision import Provisioning
from shared.runtime.dead_letters import send_dead_letters
from shared.runtime.logs_and_metrics import count, logger
from shared.runtime.provisioning_wiring import ProvisioningWiring
from shared.runtime.system import environment, new_plan_id
from shared.runtime.wiring import ActingRole
from shared.settings import ProvisionSettings

# Delay after a transient failure: long enough not to hammer, short enough not to be noticed.
_PAUSE: Final = timedelta(seconds=10)
# Time reserved at the end of an invocation for its response.
_RESERVE: Final = timedelta(seconds=10)


class ProvisionRuntime:
    """Settings and adapters of the provision function."""

    def __init__(self, settings: ProvisionSettings) -> None:
        self._wiring = ProvisioningWiring(settings, ActingRole.LAUNCH)
        self._policy = LaunchPolicy(
            lease_span=settings.lease_span,
            batch_idle=timedelta(seconds=settings.batch_idle_seconds),
            batch_max=timedelta(seconds=settings.batch_max_seconds),
            registration_timeout=timedelta(seconds=settings.registration_seconds),
            binding_policy=BindingPolicy(settings.binding_policy),
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
            minimum_pod_age=timedelta(seconds=settings.minimum_pod_age_seconds),
            eviction_cost_micros=round(settings.eviction_cost * 1_000_000),
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
        """Return when Lambda ends this invocation."""
        left = timedelta(milliseconds=context.get_remaining_time_in_millis())
        return self._wiring.clock.now() + left

    def invoke_provision(self, wake: ClusterWake) -> None:
        """Invoke provision for one cluster, without waiting for its response.

        Raises:
            NotAttachedError: If no such cluster is attached.
            RetryableError: If the call cannot be made now.
        """
        self._wiring.registry.one(wake.cluster)
        self._wiring.outbox.invoke_provision(
            wake.cluster, evaluate=wake.evaluate, changed=wake.provisioners_changed
        )

    def wake_later(self, cluster: str, delay: timedelta | None, *, evaluate: bool = False) -> bool:
        """Send a message to plan for a cluster after a delay; return whether it was sent.

        Such a message arrives in seconds; a failed record only after its visibility timeout.
        """
        send = self._wiring.outbox.evaluate if evaluate else self._wiring.outbox.wake
        try:
            send(cluster, delay or _PAUSE)
        except AutoscalerError as error:
            logger.warning("cannot send a message", cluster=cluster, error=str(error))
            return False
        return True

    def send_to_dead_letters(
        self, records: Sequence[InvalidRecord], context: LambdaContext
    ) -> list[str]:
        """Send records to the dead-letter queue; return the ids of those that were not sent.

        A record that was not sent, or not in time, is delivered again.
        """
        for reason, number in sorted(Counter(record.reason for record in records).items()):
            logger.error("records put aside", reason=reason, number=number)
        count("DeadLetters", len(records))
        until = self.deadline(context) - _RESERVE
        refused = send_dead_letters(
            [(record.text, record.reason) for record in records],
            in_time=lambda: self._wiring.clock.now() < until,
        )
        return [records[position].record_id for position in refused]


@functools.cache
def load_runtime() -> ProvisionRuntime:
    """Return the runtime of this process, created on first use."""
    return ProvisionRuntime(ProvisionSettings.from_environment(environment()))
