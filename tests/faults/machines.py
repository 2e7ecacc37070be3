"""EC2 instances as the simulator keeps them, and who is told of them."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from shared.model.launch import Instance


class Replay(StrEnum):
    """What EC2 says to a ClientToken it has seen."""

    SAME = "the same instances"
    PART = "only the first part"
    MISMATCH = "IdempotentParameterMismatch"
    FORGOTTEN = "a second fleet once the token is forgotten"


@dataclass
class Machine:
    """One instance; times are microseconds.

    Attributes:
        ran: The workloads of which a pod ever ran on it.
        rejected: The workloads of which its kubelet refused a pod.
        taken: Whether EC2 ended it by itself.
    """

    cluster: str
    instance: Instance
    born: int
    shown: int
    running: int
    user_data: str
    ended: int | None = None
    gone: int = 0
    ran: set[str] = field(default_factory=set)
    rejected: set[str] = field(default_factory=set)
    taken: bool = False


class Surroundings(Protocol):
    """Who is told of machines."""

    def launched(self, machine: Machine) -> None: ...

    def ending(self, machine: Machine) -> None: ...
