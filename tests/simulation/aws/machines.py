"""EC2 instances as the simulator keeps them, and the observers of their changes."""

from dataclasses import dataclass, field
from typing import Protocol

from infra.local.ec2.instances import Instance as Model
from shared.model import labels as keys
from shared.model.ec2.launches import Instance
from tests.simulation.schedule.kernel import START, micros


@dataclass
class Machine:
    """One instance of a cluster as the simulator keeps it; times are microseconds.

    Attributes:
        instance: As it was launched.
        ended: When it began to be terminated, None for one that has not.
        stopped: When it began to be stopped, None for one that has not.
        gone: When it is terminated.
        ran: The workloads of which a pod began to run on it before its Node was deleted: a kubelet
            that joins too late may still start some.
        rejected: The workloads of which its kubelet refused a pod.
        taken: Whether EC2 ended it by itself.
        spared: Whether a user stopped it, or deleted its Node.
        released: Whether that user removed the finalizer of its Node.
        lied: Whether it wrote on its Node what is not so: sweep puts that right within a minute.
    """

    cluster: str
    model: Model
    instance: Instance
    user_data: str
    ended: int | None = None
    stopped: int | None = None
    gone: int = 0
    ran: set[str] = field(default_factory=set)
    rejected: set[str] = field(default_factory=set)
    taken: bool = False
    spared: bool = False
    released: bool = False
    lied: bool = False

    @property
    def is_ours(self) -> bool:
        """Whether its tags say that Dovetail launched it."""
        return keys.TAG_CLUSTER in self.model.tags

    @property
    def leaves(self) -> bool:
        """Whether it was told to stop or to end: its kubelet takes no pod any more."""
        return self.ended is not None or self.stopped is not None

    @property
    def born(self) -> int:
        return micros(self.model.launched_at - START)

    @property
    def off(self) -> int:
        """When it is stopped or terminated, for one that leaves."""
        return micros(self.model.steps[-1].at - START)

    @property
    def running(self) -> int:
        """When it leaves pending, to run or to end."""
        return micros(self.model.steps[1].at - START)


class Surroundings(Protocol):
    """Receives the changes of machines."""

    def launched(self, machine: Machine) -> None: ...

    def ending(self, machine: Machine) -> None: ...

    def stopping(self, machine: Machine) -> None: ...
