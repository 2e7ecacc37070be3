"""Settings of the services as values; spans are timedeltas."""

from datetime import timedelta
from enum import StrEnum

from msgspec import Struct


class BindingPolicy(StrEnum):
    """When pods are bound to a node that was launched for them."""

    EARLY = "early"  # at once, where that is safe
    READY = "ready"  # when the node is Ready
    SCHEDULER = "scheduler"  # never: kube-scheduler does it


class PreferencePolicy(StrEnum):
    """How preferences of pods are handled: preferred affinity and ScheduleAnyway spreads."""

    RESPECT = "Respect"  # as rules, dropped one by one when nothing else can place the pod
    WEIGH = "Weigh"  # kept where that costs little more
    IGNORE = "Ignore"  # as if the pods had none


class KarpenterBehavior(StrEnum):
    """Behaviors of Karpenter that a NodePool may choose instead of Dovetail's."""

    EXPIRATION = "expiration"  # an expired node is removed first; its pods get a node afterwards
    IMAGES = "images"  # a new image goes to all nodes at once
    LIFETIME = "lifetime"  # a node keeps the lifetime it had at its launch; a change is drift


class Trigger(StrEnum):
    """What starts the replacement of a healthy node, if its owner wants that.

    A Provisioner or NodePool says `on` or `off` in an annotation of that name.
    """

    DRIFT = "drift"  # it no longer matches its owner
    REBALANCE = "rebalance"  # EC2 expects to interrupt its spot instance
    SCHEDULED_CHANGE = "scheduled-change"  # AWS will reboot, stop or retire its instance

    @property
    def annotation(self) -> str:
        """The annotation of a Provisioner or NodePool that turns the trigger on or off."""
        return f"dovetail.dev/{self.value}"


class LaunchPolicy(Struct, frozen=True, kw_only=True):
    """How launches behave.

    Attributes:
        lease_span: Length of the lease: longer than any outside call with its time-out, at most 60
            s.
        batch_idle: The fast lane waits until the pending pods are unchanged for this long.
        batch_max: The longest such wait.
        poll_interval: How often the fast lane lists pending pods meanwhile.
        registration_timeout: An instance that has not registered by then is terminated.
        initialization_timeout: A Ready node that is not initialized by then no longer counts as
            capacity for pods that are not promised to it, until it is.
        binding_policy: When pods are bound.
        consistency_delay: How long EC2 may not show an instance it has just launched.
        invocation_timeout: How long one invocation lives at most: an invocation that is frozen
            between a write and the call it announced may still make that call until then.
        replay_window: How long the exact bytes of a request are sent again; afterwards instances
            are found by tag and a new attempt is made.
        describe_delay: The delay before an instance that EC2 does not show yet is described again.
        throttle_delay: The delay after EC2 throttled a request.
        max_empty_launches: A launch ends for now after this many consecutive answers of EC2
            without an instance.
    """

    lease_span: timedelta = timedelta(seconds=50)
    batch_idle: timedelta = timedelta(seconds=1)
    batch_max: timedelta = timedelta(seconds=10)
    poll_interval: timedelta = timedelta(milliseconds=500)
    registration_timeout: timedelta = timedelta(minutes=5)
    initialization_timeout: timedelta = timedelta(minutes=5)
    binding_policy: BindingPolicy = BindingPolicy.EARLY
    consistency_delay: timedelta = timedelta(seconds=10)
    invocation_timeout: timedelta = timedelta(minutes=2)
    replay_window: timedelta = timedelta(minutes=5)
    describe_delay: timedelta = timedelta(seconds=2)
    throttle_delay: timedelta = timedelta(seconds=2)
    max_empty_launches: int = 3
