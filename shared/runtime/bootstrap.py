"""The object graph of each function, built once per process when first asked for."""

import functools
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from aws_lambda_powertools.utilities.typing import LambdaContext

from shared.aws.ec2.catalog import catalog_written_at
from shared.aws.ec2.catalog_source import CatalogSource
from shared.catalog.pod_addresses import PodNetwork
from shared.catalog.reading import load_catalog
from shared.catalog.summary import CatalogSummary, summarize
from shared.disruption.settings import DisruptionSettings
from shared.model.errors import AutoscalerError
from shared.model.policy import BindingPolicy, LaunchPolicy
from shared.node_lifecycle.binding import Binding
from shared.node_lifecycle.emptiness import Emptiness
from shared.node_lifecycle.expiration import Expiration
from shared.node_lifecycle.interruption import Interruption, NodeIndex
from shared.node_lifecycle.registration import Registration
from shared.node_lifecycle.replacement import Replacement
from shared.node_lifecycle.termination import Termination
from shared.packing.problem import PackingSettings
from shared.provisioning.provision import Provisioning
from shared.provisioning.wake_batch import ClusterWake, InvalidRecord
from shared.runtime.dead_letters import dead_letters
from shared.runtime.observability import count, logger
from shared.runtime.system import environment, new_plan_id
from shared.runtime.wiring import Right, Wiring
from shared.settings import (
    ProvisionSettings,
    RefreshCatalogSettings,
    SweepSettings,
    TerminationSettings,
    TimerSettings,
)
from shared.sweep.sweep import Sweep, SweepPolicy

# The source of what the schedules send.
SCHEDULE: Final = "aws.events"
# After a failure that may pass: long enough not to hammer, short enough not to be noticed.
_PAUSE = timedelta(seconds=10)
# What an invocation keeps of its time for its answer.
_RESERVE = timedelta(seconds=10)
# The bus gives a message up after an hour.
_OLDEST_HEARTBEAT = timedelta(hours=1)
# The schedule looks every hour and writes twice a day: less than half a day, for its jitter.
_FRESH = timedelta(hours=11, minutes=30)


class ProvisionRuntime:
    """What the provision function works with."""

    def __init__(self, settings: ProvisionSettings) -> None:
        """Prepare; nothing is connected yet."""
        self._wiring = Wiring(settings, Right.LAUNCH)
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
        )
        self._disruption = DisruptionSettings(
            minimum_saving_percent=settings.minimum_saving_percent,
            minimum_saving_micros_per_hour=round(settings.minimum_saving_per_hour * 1_000_000),
            minimum_age=timedelta(seconds=settings.minimum_age_seconds),
            budget_percent=settings.disruption_budget_percent,
            window=timedelta(seconds=settings.disruption_window_seconds),
            drift=settings.drift,
        )

    def service(self, cluster: str) -> Provisioning:
        """Return the service of one cluster."""
        return Provisioning(
            self._wiring.ports(cluster), self._policy, self._packing, new_plan_id, self._disruption
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

        A message of our own comes back in seconds; a failed record only when its visibility
        time-out is over.
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


class BindRuntime:
    """What the bind function works with."""

    def __init__(self, settings: ProvisionSettings) -> None:
        """Prepare; nothing is connected yet."""
        self._wiring = Wiring(settings, Right.INSIDE)
        self._policy = LaunchPolicy(binding=BindingPolicy(settings.binding_policy))

    def service(self, cluster: str) -> Binding:
        """Return the service of one cluster."""
        return Binding(self._wiring.ports(cluster), self._policy)


class _TimerRuntime:
    """What a function works with that takes the steps of a timer."""

    def __init__(self, settings: TimerSettings) -> None:
        """Prepare; nothing is connected yet."""
        self._wiring = Wiring(settings, Right.INSIDE)


class EmptinessRuntime(_TimerRuntime):
    """What the emptiness function works with."""

    def service(self, cluster: str) -> Emptiness:
        """Return the service of one cluster."""
        return Emptiness(self._wiring.ports(cluster))


class ExpirationRuntime(_TimerRuntime):
    """What the expiration function works with."""

    def service(self, cluster: str) -> Expiration:
        """Return the service of one cluster."""
        return Expiration(self._wiring.ports(cluster))


class RegistrationRuntime(_TimerRuntime):
    """What the registration function works with."""

    def service(self, cluster: str) -> Registration:
        """Return the service of one cluster."""
        return Registration(self._wiring.ports(cluster))


class ReplacementRuntime(_TimerRuntime):
    """What the replacement function works with."""

    def service(self, cluster: str) -> Replacement:
        """Return the service of one cluster."""
        return Replacement(self._wiring.ports(cluster))


class TerminationRuntime:
    """What the termination function works with."""

    def __init__(self, settings: TerminationSettings) -> None:
        """Prepare; nothing is connected yet."""
        self._wiring = Wiring(settings, Right.TERMINATE)
        seconds = settings.drain_deadline_seconds
        self._deadline = timedelta(seconds=seconds) if seconds else None

    def service(self, cluster: str) -> Termination:
        """Return the service of one cluster."""
        return Termination(self._wiring.ports(cluster), self._deadline)


class InterruptRuntime:
    """What the interrupt function works with."""

    def __init__(self, settings: TimerSettings) -> None:
        """Prepare; nothing is connected yet."""
        self._wiring = Wiring(settings, Right.TERMINATE)
        self._index = functools.cache(lambda _cluster: NodeIndex())

    def cluster_of(self, instance_id: str) -> str | None:
        """Return the cluster of a machine, None when it is not ours."""
        return self._wiring.ledger.cluster_of(instance_id)

    def service(self, cluster: str) -> Interruption:
        """Return the service of one cluster."""
        return Interruption(self._wiring.ports(cluster), self._index(cluster))


class SweepRuntime:
    """What the sweep function works with."""

    def __init__(self, settings: SweepSettings) -> None:
        """Prepare; nothing is connected yet."""
        self._wiring = Wiring(settings, Right.TERMINATE)
        self._policy = SweepPolicy(
            pending_grace=timedelta(seconds=settings.pending_grace_seconds),
            orphan_grace=timedelta(seconds=settings.orphan_grace_seconds),
            drift=settings.drift,
        )

    def clusters(self) -> tuple[str, ...]:
        """Return the names of all attached clusters, sorted."""
        return tuple(cluster_attachment.name for cluster_attachment in self._wiring.registry.all())

    def note_heartbeat(self, cluster: str, at: datetime) -> None:
        """Write down that the forwarder of a cluster spoke; a time ahead of ours is cut to it.

        Raises:
            NotAttachedError: If no such cluster is attached.
        """
        self._wiring.registry.one(cluster)
        now = self._wiring.clock.now()
        self._wiring.ledger.note_heartbeat(cluster, max(min(at, now), now - _OLDEST_HEARTBEAT))

    def sweep_alone(self, cluster: str) -> None:
        """Call sweep for one cluster, without waiting for its answer."""
        self._wiring.outbox.invoke_sweep(cluster)

    def service(self, cluster: str) -> Sweep:
        """Return the service of one cluster."""
        return Sweep(self._wiring.ports(cluster), self._policy)


class RefreshRuntime:
    """What the refresh_catalog function works with."""

    def __init__(self, settings: RefreshCatalogSettings) -> None:
        """Prepare; nothing is connected yet."""
        self._wiring = Wiring(settings, Right.LAUNCH)
        self._pricing_region = settings.pricing_region
        self._network = PodNetwork(
            prefix_delegation=settings.prefix_delegation,
            reserved_interfaces=settings.reserved_interfaces,
            density_limited=settings.density_limited,
            pod_interfaces=settings.pod_interfaces,
        )

    def is_fresh(self) -> bool:
        """Return whether the catalogue in the bucket is younger than half a day."""
        written = catalog_written_at(self._wiring.session, self._wiring.settings.bucket)
        return written is not None and self._wiring.clock.now() - written < _FRESH

    def refresh(self) -> CatalogSummary:
        """Write the catalogue of the Region to the bucket; return what it holds."""
        source = CatalogSource(
            self._wiring.session,
            bucket=self._wiring.settings.bucket,
            pricing_region=self._pricing_region,
            clock=self._wiring.clock,
            network=self._network,
        )
        return summarize(load_catalog(source.refresh()))


@functools.cache
def provision_runtime() -> ProvisionRuntime:
    """Return the runtime of provision."""
    return ProvisionRuntime(ProvisionSettings.from_environment(environment()))


@functools.cache
def bind_runtime() -> BindRuntime:
    """Return the runtime of bind."""
    return BindRuntime(ProvisionSettings.from_environment(environment()))


@functools.cache
def emptiness_runtime() -> EmptinessRuntime:
    """Return the runtime of emptiness."""
    return EmptinessRuntime(TimerSettings.from_environment(environment()))


@functools.cache
def expiration_runtime() -> ExpirationRuntime:
    """Return the runtime of expiration."""
    return ExpirationRuntime(TimerSettings.from_environment(environment()))


@functools.cache
def registration_runtime() -> RegistrationRuntime:
    """Return the runtime of registration."""
    return RegistrationRuntime(TimerSettings.from_environment(environment()))


@functools.cache
def replacement_runtime() -> ReplacementRuntime:
    """Return the runtime of replacement."""
    return ReplacementRuntime(TimerSettings.from_environment(environment()))


@functools.cache
def termination_runtime() -> TerminationRuntime:
    """Return the runtime of termination."""
    return TerminationRuntime(TerminationSettings.from_environment(environment()))


@functools.cache
def interrupt_runtime() -> InterruptRuntime:
    """Return the runtime of interrupt."""
    return InterruptRuntime(TimerSettings.from_environment(environment()))


@functools.cache
def sweep_runtime() -> SweepRuntime:
    """Return the runtime of sweep."""
    return SweepRuntime(SweepSettings.from_environment(environment()))


@functools.cache
def refresh_runtime() -> RefreshRuntime:
    """Return the runtime of refresh_catalog."""
    return RefreshRuntime(RefreshCatalogSettings.from_environment(environment()))
