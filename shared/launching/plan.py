"""Carrying a whole plan out: its launch groups, and what earlier invocations left open."""

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from shared.events.plan_events import PlanEvents
from shared.launching.ami_canary import ImageRollout
from shared.launching.fleet_request import LaunchContext, launch_groups
from shared.launching.intents import LaunchOutcome
from shared.launching.launcher import Launcher
from shared.launching.lease import HeldLease
from shared.launching.subnet_addresses import AddressBook
from shared.launching.verdicts import Death, LaunchVerdicts
from shared.model.ec2.launches import PlannedNode
from shared.model.errors import PermanentError
from shared.model.policy import LaunchPolicy
from shared.model.provisioner import Provisioner
from shared.ports import ClusterPorts, Site
from shared.snapshot.gather import Gathered, site_of
from shared.snapshot.images import resolve_images


class PlanLauncher:
    """Launches plans for one cluster, under its lease.

    Attributes:
        launcher: Launches one group at a time; it knows what EC2 refused.
        verdicts: What followed from that.
    """

    def __init__(self, ports: ClusterPorts, lease: HeldLease, policy: LaunchPolicy) -> None:
        self._ports = ports
        self._lease = lease
        self._events = PlanEvents(ports)
        self._addresses = AddressBook()
        self.launcher = Launcher(ports, lease, policy)
        self.verdicts = LaunchVerdicts(ports)

    def resume(self, gathered: Gathered, until: datetime) -> bool:
        """Carry on with open intents; return whether any came to its end.

        One that cannot go on is ended, or it would stop every plan after it; so is one of a
        Provisioner that is gone or invalid, or for which EC2 is not asked now.

        Args:
            until: When the last intent but the first is begun; a wake goes on with the others.
        """
        provisioners = {
            provisioner.name: provisioner for provisioner in gathered.snapshot.provisioners
        }
        owners: dict[str, tuple[Provisioner, Site]] = {}
        self._leave_out(gathered.refusals.subnets)
        ended = False
        for number, intent in enumerate(gathered.snapshot.intents):
            if number and self._is_late(until):
                break
            provisioner = provisioners.get(intent.provisioner)
            if provisioner is None:
                ended |= self.launcher.give_up(intent) != LaunchOutcome.LATER
                continue
            site = site_of(self._ports, provisioner)
            owners[provisioner.name] = (provisioner, site)
            known = gathered.refusals.of(self._ports, provisioner, site)
            if known.blocked(self._ports.clock.now()):
                ended |= self.launcher.give_up(intent) != LaunchOutcome.LATER
                continue
            try:
                context = self._ground(provisioner, site)
                safe, _ = ImageRollout(self._ports).choose(provisioner, context.images)
                context = replace(context, images=safe)
                outcome = self.launcher.resume(context, intent)
            except PermanentError as error:
                self._events.cannot_launch(provisioner, str(error))
                outcome = self.launcher.give_up(intent)
            ended |= outcome != LaunchOutcome.LATER
        self._judge(owners, gathered)
        return ended

    def give_up(self, gathered: Gathered) -> bool:
        """Pair what EC2 shows of open intents, and end them, while nothing may be launched.

        Returns:
            Whether any came to its end.
        """
        outcomes = [self.launcher.give_up(intent) for intent in gathered.snapshot.intents]
        return any(outcome != LaunchOutcome.LATER for outcome in outcomes)

    def launch(
        self,
        gathered: Gathered,
        plan_id: str,
        nodes: Sequence[PlannedNode],
        *,
        until: datetime | None = None,
        replaces: str = "",
    ) -> tuple[LaunchOutcome, ...]:
        """Launch the nodes of a plan, group after group; return how each group ended.

        Args:
            until: When the last group but the first is begun, None for no limit; a wake plans again
                for the pods of the others.
            replaces: Names of the nodes these are to replace, separated by commas.
        """
        provisioners = {
            provisioner.name: provisioner for provisioner in gathered.snapshot.provisioners
        }
        for body in gathered.bodies:
            self._addresses.note(body)
        self._leave_out(gathered.refusals.subnets)
        grounds: dict[str, LaunchContext] = {}
        outcomes: list[LaunchOutcome] = []
        numbers = itertools.count()
        for group in launch_groups(nodes):
            if outcomes and until is not None and self._is_late(until):
                break
            name = group[0].provisioner
            try:
                if name not in grounds:
                    site = gathered.found_sites[name]
                    grounds[name] = self._ground(provisioners[name], site)
                for context, part in self._parts(grounds[name], group):
                    outcomes.append(
                        self.launcher.launch(
                            context, plan_id, next(numbers), part, replaces=replaces
                        )
                    )
            except PermanentError as error:
                # One provisioner that cannot launch must not stop the others.
                self._events.cannot_launch(provisioners[name], str(error))
        owners = {
            name: (launch_ground.provisioner, launch_ground.site)
            for name, launch_ground in grounds.items()
        }
        self._judge(owners, gathered)
        return tuple(outcomes)

    def buried(self, deaths: Sequence[Death], provisioners: Mapping[str, Provisioner]) -> None:
        """Act on machines that ended before they were nodes."""
        if not deaths:
            return
        named = {death.slot.provisioner for death in deaths} & provisioners.keys()
        owners = {
            name: (provisioners[name], site_of(self._ports, provisioners[name]))
            for name in sorted(named)
        }
        self.verdicts.of_deaths(deaths, owners)
        self._wake_after(self.verdicts.wait)

    def started(self, names: Collection[str], gathered: Gathered) -> None:
        """Act on machines that run: where others died of what they were launched with, it is over.

        Args:
            names: Of the Provisioners they are of.
        """
        for owner in gathered.snapshot.provisioners:
            known = gathered.refusals.records.get(owner.name)
            if owner.name in names and known is not None and known.by_machine:
                self.verdicts.of_start(owner, site_of(self._ports, owner))

    def _leave_out(self, subnets: frozenset[str]) -> None:
        """Ask for no machine in subnets that EC2 refused before this invocation."""
        self.launcher.shortage.subnets |= subnets
        self.verdicts.subnets |= subnets

    def _judge(self, owners: Mapping[str, tuple[Provisioner, Site]], gathered: Gathered) -> None:
        """Act on what EC2 said to these launches; what it says to the next ones is told anew."""
        shortage = self.launcher.shortage
        self.verdicts.of_subnets(shortage.subnets)
        self.verdicts.of_launches(shortage.verdicts, owners, gathered)
        shortage.judged()
        self._wake_after(self.verdicts.wait)

    def _is_late(self, until: datetime) -> bool:
        """Return whether the time for launches is over; a wake goes on then."""
        late = self._ports.clock.now() >= until
        if late:
            self._wake_after(timedelta(0))
        return late

    def _wake_after(self, wait: timedelta | None) -> None:
        if wait is not None:
            self.launcher.book.wait_until(self._ports.clock.now() + wait)

    def _parts(
        self, context: LaunchContext, group: Sequence[PlannedNode]
    ) -> Iterator[tuple[LaunchContext, Sequence[PlannedNode]]]:
        """Yield what is launched with which images: a new one goes to one node first.

        What is yielded first is written down as a trial before it is asked for.
        """
        self._lease.keep()
        rollout, name = ImageRollout(self._ports), context.provisioner.name
        rollout.note_first(name, context.images)
        safe, tried = rollout.choose(context.provisioner, context.images)
        types = [option.offering.instance_type for option in group[0].options]
        if any(safe.of(type_) != tried.of(type_) for type_ in types) and rollout.begin(
            name, tried, types
        ):
            yield replace(context, images=tried), group[:1]
            group = group[1:]
        if group:
            yield replace(context, images=safe), group

    def wake_when_due(self) -> None:
        """Send the message that goes on with the first of the postponed launches, if any."""
        due = self.launcher.book.due
        if due is not None:
            wait = max(due - self._ports.clock.now(), timedelta(0))
            self._ports.outbox.wake(self._ports.cluster.name, wait)

    def _ground(self, provisioner: Provisioner, site: Site) -> LaunchContext:
        self._lease.keep()
        endpoint = self._ports.cloud.endpoint()
        instance_types = self._ports.catalog.instance_types()
        return LaunchContext(
            cluster=self._ports.cluster.name,
            provisioner=provisioner,
            endpoint=endpoint,
            site=site,
            images=resolve_images(
                self._ports.cloud,
                provisioner.template,
                endpoint.version,
                instance_types,
                provisioner.dialect,
            ),
            profile=self._ports.profile_of(provisioner.template),
            metadata=self._ports.metadata,
            instance_types={known.name: known for known in instance_types},
            addresses=self._addresses,
        )
