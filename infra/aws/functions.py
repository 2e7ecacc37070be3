"""Every function of the control plane and what it may do; the stack is built from this table."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from shared.settings import (
    BindSettings,
    FunctionSettings,
    ProvisionSettings,
    RefreshCatalogSettings,
    SweepSettings,
    TerminationSettings,
    TimerSettings,
)


class Timer(StrEnum):
    """The state machines, by the name of the function that takes their steps."""

    EMPTINESS = "emptiness"
    EXPIRATION = "expiration"
    REGISTRATION = "registration"
    REPLACEMENT = "replacement"
    TERMINATION = "termination"

    @property
    def machine_name(self) -> str:
        """Name of the state machine."""
        if self is Timer.TERMINATION:
            return "DovetailNodeTermination"
        if self is Timer.REPLACEMENT:
            return "DovetailReplacement"
        return f"Dovetail{self.value.capitalize()}Timer"


class Right(StrEnum):
    """What a cluster's role may do; no role may do two of these.

    INSIDE acts in Kubernetes and changes nothing in EC2.
    """

    INSIDE = "inside"
    LAUNCH = "launch"
    TERMINATE = "terminate"

    @property
    def kubernetes_group(self) -> str:
        """Group that the access entry of the role gives, bound by infra/cluster."""
        return f"dovetail:{self.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionPlan:
    """One function.

    Attributes:
        name: Of its package under functions/.
        purpose: One line for the console.
        settings: Model that reads its environment.
        asynchronous: Whether events or other functions call it without waiting for its answer.
        async_retries: How often a failed call of that kind is repeated.
        async_max_age_seconds: ... and how long it stays worth doing.
        async_failures_kept: ... and whether it ends in the dead letters, for people to look at;
            not where the queue brings the same.
        right: Which role of each cluster it assumes; None when it calls no cluster.
        finds_clusters: Whether it reads which clusters are attached; every function with a right
            does.
        starts: State machines it starts.
        wakes: Whether it sends to the wake queue.
        woken: Whether the wake queue calls it.
        invokes: Functions that it invokes.
        concurrency: How many may run at once, reserved: no other function takes them, and this
            one takes no more.
        allows_loops: Whether one chain of requests may invoke it more than 16 times: it wakes
            itself, within bounds of its own.
        uses_ledger: Whether it reads and writes the ledger.
        keeps_decisions: Whether it reads and writes decisions and reads the catalogue.
        takes_copies: Whether it reads copies of clusters' pods and nodes.
        leaves_copies: Whether it writes them, too.
        writes_catalogue: Whether it writes the catalogue from EC2 and the price list, and makes
            the service-linked roles of EC2.
    """

    name: str
    purpose: str
    settings: type[FunctionSettings] = TimerSettings
    timeout_seconds: int = 60
    memory_mib: int = 512
    asynchronous: bool = True
    async_retries: int = 2
    async_max_age_seconds: int = 3600
    async_failures_kept: bool = True
    right: Right | None = None
    finds_clusters: bool = False
    starts: tuple[Timer, ...] = ()
    wakes: bool = False
    woken: bool = False
    invokes: tuple[str, ...] = ()
    concurrency: int = 50
    allows_loops: bool = False
    uses_ledger: bool = True
    keeps_decisions: bool = False
    takes_copies: bool = False
    leaves_copies: bool = False
    writes_catalogue: bool = False


FUNCTIONS: Final = (
    FunctionPlan(
        name="provision",
        purpose="Plans and launches nodes for pending pods",
        settings=ProvisionSettings,
        timeout_seconds=120,
        memory_mib=1024,
        # Fast lane and interrupt call it so, and provision for each cluster of a batch. Where
        # all calls die, sweep finds what is undone.
        async_max_age_seconds=600,
        async_failures_kept=False,
        right=Right.LAUNCH,
        starts=(Timer.EXPIRATION, Timer.REGISTRATION, Timer.REPLACEMENT),
        wakes=True,
        woken=True,
        invokes=("bind", "provision"),
        # While the API server is away it wakes itself every ten seconds.
        allows_loops=True,
        keeps_decisions=True,
        takes_copies=True,
    ),
    FunctionPlan(
        name="bind",
        purpose="Binds nominated pods to nodes that have become ready",
        settings=BindSettings,
        right=Right.INSIDE,
        # A node whose machine EC2 took while it was being made is drained.
        starts=(Timer.EXPIRATION, Timer.TERMINATION),
        # provision invokes it again for what a former call left.
        allows_loops=True,
    ),
    FunctionPlan(
        name="emptiness",
        purpose="Takes the steps of EmptinessTimer",
        right=Right.INSIDE,
        starts=(Timer.EMPTINESS, Timer.TERMINATION),
    ),
    FunctionPlan(
        name="expiration",
        purpose="Takes the steps of ExpirationTimer",
        asynchronous=False,
        concurrency=25,
        right=Right.INSIDE,
        starts=(Timer.TERMINATION,),
        # A node with pods on it is replaced, not removed.
        wakes=True,
    ),
    FunctionPlan(
        name="registration",
        purpose="Takes the steps of RegistrationTimer",
        asynchronous=False,
        concurrency=25,
        right=Right.INSIDE,
        starts=(Timer.TERMINATION,),
        # The pods of a machine that never joined are planned again.
        wakes=True,
        invokes=("bind",),
    ),
    FunctionPlan(
        name="replacement",
        purpose="Runs the steps of Replacement: removes nodes once their replacements are ready",
        # It looks once more whether all pods fit elsewhere.
        memory_mib=1024,
        asynchronous=False,
        concurrency=25,
        right=Right.INSIDE,
        # A new node whose pods never came is watched from then on.
        starts=(Timer.EMPTINESS, Timer.REPLACEMENT, Timer.TERMINATION),
        wakes=True,
    ),
    FunctionPlan(
        name="termination",
        purpose="Takes the steps of NodeTermination",
        settings=TerminationSettings,
        right=Right.TERMINATE,
        starts=(Timer.TERMINATION,),
    ),
    FunctionPlan(
        name="interrupt",
        purpose="Answers interruption warnings of EC2",
        right=Right.TERMINATE,
        starts=(Timer.TERMINATION,),
        # Pods of a machine that will be lost are planned for at once.
        wakes=True,
        invokes=("provision",),
    ),
    FunctionPlan(
        name="sweep",
        purpose="Finds what lost events left undone and wakes who does it",
        settings=SweepSettings,
        # The next minute sweeps again.
        async_retries=0,
        async_max_age_seconds=60,
        right=Right.TERMINATE,
        # Any timer can have been lost, so sweep may start each of them.
        starts=tuple(Timer),
        wakes=True,
        # The schedule's invocation gives each cluster one of its own.
        invokes=("bind", "sweep"),
        takes_copies=True,
        leaves_copies=True,
    ),
    FunctionPlan(
        name="heartbeat",
        purpose="Writes down when each forwarder was last heard of",
        settings=FunctionSettings,
        # The next one comes in five minutes.
        async_retries=0,
        async_max_age_seconds=300,
        finds_clusters=True,
        # A forwarder that sends too many takes no more than this.
        concurrency=5,
    ),
    FunctionPlan(
        name="refresh_catalog",
        purpose="Writes instance types, offerings and prices of the Region",
        settings=RefreshCatalogSettings,
        concurrency=1,
        uses_ledger=False,
        writes_catalogue=True,
    ),
)

BY_RIGHT: Final = {
    right: tuple(plan.name for plan in FUNCTIONS if plan.right == right) for right in Right
}
