"""How the services behave: settings as values, spans as timedeltas."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class BindingPolicy(StrEnum):
    """When pods are bound to a node that was launched for them."""

    EARLY = "early"  # at once, where that is safe
    READY = "ready"  # when the node is Ready
    SCHEDULER = "scheduler"  # never: kube-scheduler does it


class PreferencePolicy(StrEnum):
    """What becomes of what pods prefer: affinity with a weight, spreads that may be broken."""

    RESPECT = "Respect"  # rules, dropped one by one when nothing else can place the pod
    WEIGH = "Weigh"  # kept where that costs little more
    IGNORE = "Ignore"  # as if it were not there


class KarpenterWay(StrEnum):
    """What a NodePool may ask to be done as Karpenter does it, where Dovetail does otherwise."""

    EXPIRATION = "expiration"  # a node goes at its age; its pods get another one then
    IMAGES = "images"  # a new image goes to all nodes at once
    LIFETIME = "lifetime"  # a node lives as long as was said at its launch; a change is drift


class Trigger(StrEnum):
    """What begins the replacement of a node that runs well, if its owner wants that.

    A Provisioner or NodePool says `on` or `off` in an annotation of that name.
    """

    DRIFT = "drift"  # it is no longer what its owner asks for
    REBALANCE = "rebalance"  # EC2 expects to interrupt it
    SCHEDULED_CHANGE = "scheduled-change"  # AWS will reboot, stop or retire its instance

    @property
    def annotation(self) -> str:
        """The annotation of a Provisioner or NodePool that says whether it is acted on."""
        return f"dovetail.dev/{self.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPolicy:
    """How launches behave.

    Attributes:
        lease: Length of the lease: longer than any outside call with its time-out, at most 60 s.
        batch_idle: The fast lane waits until the pending pods are unchanged this long.
        batch_max: But no longer than this.
        poll: How often it looks.
        registration: A machine that has not registered by then is terminated.
        initialization: A Ready node that is not initialized by then stops counting as capacity
            for pods that are not promised to it, until it is.
        binding: When pods are bound.
        consistency: How long EC2 may not show an instance it has just launched.
        invocation: How long one invocation lives at most: one that is frozen between a write and
            the call it announced may still make that call until then.
        replay: How long the exact bytes of a request are sent again; afterwards instances are
            looked for by tag and a new attempt is made.
        describe: How long to wait before looking again for a machine EC2 does not show yet.
        throttled: How long to wait after EC2 asked to slow down.
        max_empty: A launch that EC2 gives nothing so many times in a row is over for now.
    """

    lease: timedelta = timedelta(seconds=50)
    batch_idle: timedelta = timedelta(seconds=1)
    batch_max: timedelta = timedelta(seconds=10)
    poll: timedelta = timedelta(milliseconds=500)
    registration: timedelta = timedelta(minutes=5)
    initialization: timedelta = timedelta(minutes=5)
    binding: BindingPolicy = BindingPolicy.EARLY
    consistency: timedelta = timedelta(seconds=10)
    invocation: timedelta = timedelta(minutes=2)
    replay: timedelta = timedelta(minutes=5)
    describe: timedelta = timedelta(seconds=2)
    throttled: timedelta = timedelta(seconds=2)
    max_empty: int = 3
