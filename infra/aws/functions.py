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


class TimerStateMachine(StrEnum):
    """The state machines, by the name of the function that takes their steps."""

    EMPTINESS = "emptiness"
    EXPIRATION = "expiration"
    REGISTRATION = "registration"
    REPLACEMENT = "replacement"
    TERMINATION = "termination"

    @property
    def machine_name(self) -> str:
        """Name of the state machine."""
        if self is TimerStateMachine.TERMINATION:
            return "DovetailNodeTermination"
        if self is TimerStateMachine.REPLACEMENT:
            return "DovetailReplacement"
        return f"Dovetail{self.value.capitalize()}Timer"


class ClusterRoleKind(StrEnum):
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
class FunctionSpec:
    """One function.

    Attributes:
        name: Name of its package under functions/.
        purpose: One line for the console.
        settings: Model that reads its environment.
        asynchronous: Whether events or other functions call it without waiting for its response.
        async_retries: How often a failed asynchronous call is retried.
        async_max_age_seconds: Age at which a failed call is no longer retried.
        async_failures_kept: Whether a call that failed for good goes to the dead-letter queue;
            not if the wake queue delivers the same.
        cluster_role: Which role of each cluster it assumes; None when it calls no cluster.
        finds_clusters: Whether it reads which clusters are attached; every function with a
            `cluster_role` does.
        starts: State machines it starts.
        wakes: Whether it sends to the wake queue.
        woken: Whether the wake queue calls it.
        invokes: Functions that it invokes.
        concurrency: Reserved concurrency: no other function uses it, and this one uses no more.
        allows_loops: Whether one chain of requests may invoke it more than 16 times: it wakes
            itself, within bounds of its own.
        uses_ledger: Whether it reads and writes the ledger.
        uses_decisions: Whether it reads and writes decisions and reads the catalogue.
        reads_copies: Whether it reads copies of clusters' pods and nodes.
        writes_copies: Whether it writes them, too.
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
    cluster_role: ClusterRoleKind | None = None
    finds_clusters: bool = False
    starts: tuple[TimerStateMachine, ...] = ()
    wakes: bool = False
    woken: bool = False
    invokes: tuple[str, ...] = ()
    concurrency: int = 50
    allows_loops: bool = False
    uses_ledger: bool = True
    uses_decisions: bool = False
    reads_copies: bool = False
    writes_copies: bool = False
    writes_catalogue: bool = False


FUNCTIONS: Final = (
    FunctionSpec(
        name="provision",
        purpose="Plans and launches nodes for pending pods",
        settings=ProvisionSettings,
        timeout_seconds=120,
        memory_mib=1024,
        # The fast lane and interrupt call it asynchronously, and so does provision for each
        # cluster of a batch. If all calls fail, sweep finds what is left to do.
        async_max_age_seconds=600,
        async_failures_kept=False,
        cluster_role=ClusterRoleKind.LAUNCH,
        starts=(
            TimerStateMachine.EXPIRATION,
            TimerStateMachine.REGISTRATION,
            TimerStateMachine.REPLACEMENT,
        ),
        wakes=True,
        woken=True,
        invokes=("bind", "provision"),
        # While the API server is unreachable it wakes itself every ten seconds.
        allows_loops=True,
        uses_decisions=True,
        reads_copies=True,
    ),
    FunctionSpec(
        name="bind",
        purpose="Binds nominated pods to nodes that have become ready",
        settings=BindSettings,
        cluster_role=ClusterRoleKind.INSIDE,
        # A node whose instance EC2 interrupted while it was starting is drained.
        starts=(TimerStateMachine.EXPIRATION, TimerStateMachine.TERMINATION),
        # provision invokes it again for what an earlier call left.
        allows_loops=True,
    ),
    FunctionSpec(
        name="emptiness",
        purpose="Takes the steps of EmptinessTimer",
        cluster_role=ClusterRoleKind.INSIDE,
        starts=(TimerStateMachine.EMPTINESS, TimerStateMachine.TERMINATION),
    ),
    FunctionSpec(
        name="expiration",
        purpose="Takes the steps of ExpirationTimer",
        asynchronous=False,
        concurrency=25,
        cluster_role=ClusterRoleKind.INSIDE,
        starts=(TimerStateMachine.TERMINATION,),
        # A node with pods on it is replaced, not removed.
        wakes=True,
    ),
    FunctionSpec(
        name="registration",
        purpose="Takes the steps of RegistrationTimer",
        asynchronous=False,
        concurrency=25,
        cluster_role=ClusterRoleKind.INSIDE,
        starts=(TimerStateMachine.TERMINATION,),
        # The pods of an instance that never joined are planned again.
        wakes=True,
        invokes=("bind",),
    ),
    FunctionSpec(
        name="replacement",
        purpose="Runs the steps of Replacement: removes nodes once their replacements are ready",
        # It checks once more whether all pods fit elsewhere.
        memory_mib=1024,
        asynchronous=False,
        concurrency=25,
        cluster_role=ClusterRoleKind.INSIDE,
        # A new node whose pods never arrived gets an emptiness timer from then on.
        starts=(
            TimerStateMachine.EMPTINESS,
            TimerStateMachine.REPLACEMENT,
            TimerStateMachine.TERMINATION,
        ),
        wakes=True,
    ),
    FunctionSpec(
        name="termination",
        purpose="Takes the steps of NodeTermination",
        settings=TerminationSettings,
        cluster_role=ClusterRoleKind.TERMINATE,
        starts=(TimerStateMachine.TERMINATION,),
    ),
    FunctionSpec(
        name="interrupt",
        purpose="Answers interruption warnings of EC2",
        cluster_role=ClusterRoleKind.TERMINATE,
        starts=(TimerStateMachine.TERMINATION,),
        # Pods of an instance that will be lost are planned for at once.
        wakes=True,
        invokes=("provision",),
    ),
    FunctionSpec(
        name="sweep",
        purpose="Finds what lost events left undone and wakes who does it",
        settings=SweepSettings,
        # The next minute sweeps again.
        async_retries=0,
        async_max_age_seconds=60,
        cluster_role=ClusterRoleKind.TERMINATE,
        # Any timer can have been lost, so sweep may start each of them.
        starts=tuple(TimerStateMachine),
        wakes=True,
        # The schedule's invocation invokes sweep for each cluster.
        invokes=("bind", "sweep"),
        reads_copies=True,
        writes_copies=True,
    ),
    FunctionSpec(
        name="heartbeat",
        purpose="Writes down when each forwarder was last heard of",
        settings=FunctionSettings,
        # The next heartbeat comes in five minutes.
        async_retries=0,
        async_max_age_seconds=300,
        finds_clusters=True,
        # A forwarder that sends too many uses no more than this.
        concurrency=5,
    ),
    FunctionSpec(
        name="refresh_catalog",
        purpose="Writes instance types, offerings and prices of the Region",
        settings=RefreshCatalogSettings,
        concurrency=1,
        uses_ledger=False,
        writes_catalogue=True,
    ),
)

FUNCTIONS_BY_ROLE: Final = {
    right: tuple(plan.name for plan in FUNCTIONS if plan.cluster_role == right)
    for right in ClusterRoleKind
}
