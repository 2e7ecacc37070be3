"""Nodes change hands, one by one and step by step.

Nothing is remembered between steps: each begins with reading what is there, and with the question
whether Karpenter is at rest. So a migration that was killed goes on wherever it stopped, when it is
run again, in either direction.
"""

import dataclasses
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final

from shared.launching.slots import slot_of_machine
from shared.manifests.custom_resources.node_claims import (
    kept_text,
    node_claim_document,
    node_claim_status,
    read_kept,
)
from shared.migration.handover import (
    OUR_TAGS,
    THEIR_TAGS,
    Direction,
    Handover,
    Step,
    annotations_of_ours,
    next_step,
    no_annotations_of_ours,
    why_not,
)
from shared.migration.survey import Survey, Surveyor
from shared.model import labels as keys
from shared.model.ec2.launches import Slot
from shared.model.errors import ConflictError, PermanentError
from shared.model.kubernetes.node_claims import NodeClaim
from shared.ports import ClusterPorts, NodeChange
from shared.ports.karpenter import Karpenter, MachineTags

# The holder of the cluster's lease plans for some seconds; tags are shown after some, too.
_PAUSE: Final = timedelta(seconds=3)
_ATTEMPTS: Final = 20
_HOLDER: Final = "migrate"

Tell = Callable[[Step], object]


class HeldError(PermanentError):
    """Karpenter runs, or a node must not change hands now; the text says what to do.

    Attributes:
        for_all: Whether it holds for every node: Karpenter runs.
    """

    def __init__(self, message: str, *, for_all: bool = False) -> None:
        super().__init__(message)
        self.for_all = for_all


class Migration:
    """Takes nodes over from Karpenter, and hands them back.

    Args:
        ports: Of the cluster.
        karpenter: Its objects in the cluster.
        tags: The right to change the tags of the cluster's machines.
        wait: Waits that long before a step is tried again.
    """

    def __init__(
        self,
        ports: ClusterPorts,
        karpenter: Karpenter,
        tags: MachineTags,
        wait: Callable[[timedelta], object],
    ) -> None:
        self._ports = ports
        self._karpenter = karpenter
        self._tags = tags
        self._wait = wait
        self._surveyor = Surveyor(ports, karpenter)
        self._steps: Mapping[Step, Callable[[Handover], object]] = {
            Step.KEEP_CLAIM: self._keep_claim,
            Step.WRITE_LEDGER: self._write_ledger,
            Step.TAG_OURS: lambda seen: self._tag(seen, seen.our_tags),
            Step.UNTAG_THEIRS: lambda seen: self._untag(seen, THEIR_TAGS),
            Step.FREE_NODE: self._free_node,
            Step.FREE_CLAIM: lambda seen: self._karpenter.remove_finalizer(_claim(seen)),
            Step.DELETE_CLAIM: lambda seen: self._karpenter.delete_node_claim(_claim(seen)),
            Step.OWN_NODE: self._own_node,
            Step.CLOSE_SLOT: self._close_slot,
            Step.DISOWN_NODE: self._disown_node,
            Step.MAKE_CLAIM: self._make_claim,
            Step.WRITE_STATUS: self._write_status,
            Step.GIVE_NODE: self._give_node,
            Step.TAG_THEIRS: lambda seen: self._tag(seen, seen.their_tags),
            Step.UNTAG_OURS: lambda seen: self._untag(seen, OUR_TAGS),
            Step.DROP_LEDGER: self._drop_ledger,
            Step.FORGET_CLAIM: self._forget_claim,
        }

    def survey(self, direction: Direction) -> Survey:
        """Return which nodes can change hands; nothing is changed."""
        return self._surveyor.survey(direction)

    def move(self, name: str, direction: Direction, tell: Tell) -> None:
        """Let one node change hands.

        Args:
            tell: Called after each step.

        Raises:
            HeldError: If Karpenter runs, or the node must not change hands now.
            RetryableError: If a step met another writer each time it was tried.
        """
        left = _ATTEMPTS
        last: Step | None = None
        while True:
            if running := self._karpenter.running():
                raise HeldError("; ".join(running), for_all=True)
            seen = self._surveyor.look(name)
            if seen is None:
                raise HeldError(f"node {name} is gone")
            step = next_step(seen, direction)
            if step is None:
                return
            if reason := why_not(seen, direction):
                raise HeldError(f"node {name}: {reason}")
            left = left - 1 if step == last else _ATTEMPTS
            if not left:
                raise ConflictError(
                    f"node {name}: after {_ATTEMPTS} tries not {step}; run it again"
                )
            if step == last:
                self._wait(_PAUSE)
            last = step
            try:
                self._steps[step](seen)
            except ConflictError:
                # Another program wrote meanwhile: the next look sees what.
                continue
            tell(step)

    # --- taking over

    def _keep_claim(self, seen: Handover) -> None:
        self._change(seen, NodeChange(set_annotations={keys.NODE_CLAIM: kept_text(_claim(seen))}))

    def _write_ledger(self, seen: Handover) -> None:
        """Pair the machine with a slot, under the lease: no plan may be under way."""
        ledger, name = self._ports.ledger, self._ports.cluster.name
        lease = ledger.acquire(name, _HOLDER, self._ports.clock.now())
        if lease is None:
            raise ConflictError(f"cluster {name}: a plan is under way")
        try:
            if seen.slot is not None:
                # Only one side of the pair is lost: the pair is written again.
                ledger.drop_slot(seen.slot, lease)
            ledger.fill_slot(lease, self._slot(seen))
        finally:
            while not ledger.release(lease):
                # A plan was asked for meanwhile and left to the holder of the lease.
                self._ports.outbox.wake(name, timedelta(0))

    def _free_node(self, seen: Handover) -> None:
        node, claim = seen.node, seen.claim
        left = tuple(name for name in node.finalizers if name != keys.TERMINATION_FINALIZER)
        owners = frozenset({claim.uid} if claim is not None else ())
        self._change(seen, NodeChange(finalizers=left, drop_owners=owners))

    def _own_node(self, seen: Handover) -> None:
        node, owner = seen.node, seen.owner
        assert owner is not None
        change = NodeChange(
            set_annotations=annotations_of_ours(seen, self._slot(seen)),
            finalizers=tuple(sorted({*node.finalizers, keys.TERMINATION_FINALIZER})),
            owner=None if owner.uid in node.owners else owner,
        )
        self._change(seen, change)

    def _close_slot(self, seen: Handover) -> None:
        assert seen.slot is not None
        self._ports.ledger.drop_slot(seen.slot)

    # --- handing back

    def _disown_node(self, seen: Handover) -> None:
        node, owner = seen.node, seen.owner
        change = NodeChange(
            set_annotations=no_annotations_of_ours(),
            finalizers=tuple(
                name for name in node.finalizers if name != keys.TERMINATION_FINALIZER
            ),
            drop_owners=frozenset({owner.uid} if owner is not None else ()),
        )
        self._change(seen, change)

    def _make_claim(self, seen: Handover) -> None:
        assert seen.owner is not None
        document = node_claim_document(read_kept(seen.node), seen.owner)
        claim = self._karpenter.make_node_claim(document)
        # At once: a Karpenter that is started in between launches a machine for it.
        self._write_status(dataclasses.replace(seen, claim=claim))

    def _write_status(self, seen: Handover) -> None:
        assert seen.instance is not None
        status = node_claim_status(seen.node, seen.instance, self._ports.clock.now())
        self._karpenter.write_status(_claim(seen), status)

    def _give_node(self, seen: Handover) -> None:
        node, claim = seen.node, _claim(seen)
        change = NodeChange(
            finalizers=tuple(sorted({*node.finalizers, keys.TERMINATION_FINALIZER})),
            owner=None if claim.uid in node.owners else claim.as_owner(),
        )
        self._change(seen, change)

    def _drop_ledger(self, seen: Handover) -> None:
        if seen.slot is not None:
            self._ports.ledger.drop_slot(seen.slot)
        self._ports.ledger.drop_instance(seen.node.instance_id)

    def _forget_claim(self, seen: Handover) -> None:
        self._change(seen, NodeChange(set_annotations={keys.NODE_CLAIM: None}))

    # --- either

    def _change(self, seen: Handover, change: NodeChange) -> None:
        self._ports.cluster.change_node(seen.node, change)

    def _tag(self, seen: Handover, tags: Mapping[str, str]) -> None:
        self._tags.tag(seen.node.instance_id, tags)

    def _untag(self, seen: Handover, tag_keys: tuple[str, ...]) -> None:
        self._tags.untag(seen.node.instance_id, tag_keys)

    def _slot(self, seen: Handover) -> Slot:
        """Return the slot of a machine, the same whenever it is asked for."""
        assert seen.instance is not None
        types = {entry.name: entry for entry in self._ports.catalog.instance_types()}
        of_type = types.get(seen.instance.offering.instance_type)
        tagged = dataclasses.replace(seen.instance, tags={**seen.instance.tags, **seen.our_tags})
        now = self._ports.clock.now()
        return slot_of_machine(seen.cluster, tagged, seen.node, of_type, now)


def _claim(seen: Handover) -> NodeClaim:
    assert seen.claim is not None
    return seen.claim
