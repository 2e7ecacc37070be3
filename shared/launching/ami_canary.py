"""The AMI canary: a new image is launched on one node first; others get the last that worked.

A memo holds what is known of a Provisioner's images: for each kind of image the id that last
registered a node (good), the one being tried and since when (trial), and the id of which a machine
did not register, with the time (bad). It is written before a machine is launched with a new image,
and again when the node is initialized or its machine is terminated as late. A trial without an
outcome times out and is repeated, so a crash anywhere costs minutes and no verdict.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from shared.events.node_events import event_on
from shared.events.recorder import EventRecorder
from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.memo import Memo
from shared.model.policy import KarpenterWay
from shared.model.provisioner import Provisioner
from shared.ports import NodePorts
from shared.snapshot.images import ImageTable

IMAGES: Final = "images#"
# Longer than a machine may take to register, its launch included.
_TRIAL: Final = timedelta(minutes=10)
# After so long an image that did not register is tried once more: what was missing may be there.
_FORGIVEN: Final = timedelta(hours=6)
_KEEP: Final = timedelta(days=400)
_LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of one kind of image of one Provisioner.

    Attributes:
        good: The id that last registered a node, empty when none is known.
        trial: The id that is being tried on one node, empty when none is.
        bad: The id of which a machine did not register last, empty when there is none.
    """

    good: str = ""
    trial: str = ""
    trial_at: datetime = _LONG_AGO
    bad: str = ""
    bad_at: datetime = _LONG_AGO


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which images the nodes of one plan get.

    Attributes:
        safe: Image kind to id, for all nodes but one.
        tried: Likewise for that one; the same when nothing is to be tried.
    """

    safe: Mapping[str, str]
    tried: Mapping[str, str]


def choose(newest: Mapping[str, str], known: Mapping[str, Known], now: datetime) -> Choice:
    """Return which image of each kind is launched.

    The first image of a kind is good as it is: there is nothing to go back to.

    Args:
        newest: Image kind to the newest id.
        known: By image kind.
    """
    safe, tried = {}, {}
    for kind, image in newest.items():
        one = known.get(kind, Known())
        refused = one.bad == image and now - one.bad_at < _FORGIVEN
        under_way = one.trial == image and now - one.trial_at < _TRIAL
        safe[kind] = one.good or image
        tried[kind] = safe[kind] if refused or under_way else image
    return Choice(safe=safe, tried=tried)


class ImageRollout:
    """Keeps the memo of each Provisioner's images in one cluster."""

    def __init__(self, ports: NodePorts) -> None:
        self._ports = ports

    def choose(self, owner: Provisioner, images: ImageTable) -> tuple[ImageTable, ImageTable]:
        """Return the images for all nodes of a plan but one, and those for that one.

        Both are the same when there is nothing new to try, or nothing is to be tried first.
        """
        if KarpenterWay.IMAGES in owner.as_karpenter:
            return images, images
        now = self._ports.clock.now()
        known = _known(self._memo(owner.name))
        choice = choose(images.ids, known, now)
        return images.with_ids(choice.safe), images.with_ids(choice.tried)

    def waits(self, owner: Provisioner, images: ImageTable) -> dict[str, str]:
        """Return why nodes with the last image that worked keep it for now, by its id.

        Not where the newest is yet to be tried: the first of these nodes is replaced for that.
        """
        safe, tried = self.choose(owner, images)
        now, known = self._ports.clock.now(), _known(self._memo(owner.name))
        return {
            safe.ids[kind]: _outcome(newest, known[kind], now)
            for kind, newest in images.ids.items()
            if newest != tried.ids[kind] == safe.ids[kind]
        }

    def begin(self, provisioner: str, images: ImageTable, instance_types: Iterable[str]) -> bool:
        """Record a trial of images, before the one node with them is launched.

        Args:
            instance_types: The types that the node may be launched as.

        Returns:
            False if the memo was changed meanwhile: the node gets the safe images.
        """
        memo, now = self._memo(provisioner), self._ports.clock.now()
        known = _known(memo)
        for kind in sorted(
            {images.kinds.get(instance_type, "") for instance_type in instance_types}
            & {*images.ids}
        ):
            before = known.get(kind, Known())
            if before.good and before.good != images.ids[kind]:
                known[kind] = replace(before, trial=images.ids[kind], trial_at=now)
        return self._write(memo, known)

    def note_first(self, provisioner: str, images: ImageTable) -> None:
        """Record the first image of each new kind: later failures fall back to it."""
        memo = self._memo(provisioner)
        known = _known(memo)
        new = {kind: Known(good=value) for kind, value in images.ids.items() if kind not in known}
        if new:
            # A faster writer has written the same.
            self._write(memo, known | new)

    def registered(self, node: Node) -> None:
        """Record that a node has been initialized: its image works."""
        memo = self._memo(node.provisioner)
        image = node.annotations.get(keys.IMAGE_ID, "")
        known = _known(memo)
        works = {
            kind: Known(good=image)
            for kind, other_image in known.items()
            if image and image in (other_image.trial, other_image.bad)
        }
        if works:
            self._write(memo, known | works)

    def failed(self, node: Node) -> bool:
        """Record that a machine did not register: a trial of its image ends.

        Returns:
            Whether its image was on trial and this failure is the first recorded.
        """
        memo, now = self._memo(node.provisioner), self._ports.clock.now()
        image = node.annotations.get(keys.IMAGE_ID, "")
        known = _known(memo)
        stopped = {
            kind: replace(other_image, trial="", bad=image, bad_at=now)
            for kind, other_image in known.items()
            if image and other_image.trial == image
        }
        if not stopped or not self._write(memo, known | stopped):
            return False
        good = ", ".join(sorted({image.good for image in stopped.values()}))
        text = (
            f"image {image} was tried on {node.instance_id}, which did not register: nodes get "
            f"{good} as before; the new one is tried again in {_FORGIVEN // timedelta(hours=1)} h"
        )
        owners, _ = self._ports.cluster.provisioners()
        EventRecorder(self._ports).record(
            event_on(owner, "ImageNotRegistering", text) for owner in owners if owner.owns(node)
        )
        return True

    def vanished(self, provisioner: str, used: Collection[str]) -> None:
        """Write down that EC2 does not know an image of these any more.

        One on trial is refused like one that did not register. The one that was gone back to is
        forgotten: there is nothing else that is known to work, so the newest takes its place.
        """
        memo, now = self._memo(provisioner), self._ports.clock.now()
        known = {
            kind: replace(image, trial="", bad=image.trial, bad_at=now)
            if image.trial in used
            else image
            for kind, image in _known(memo).items()
            if image.good not in used
        }
        self._write(memo, known)

    def _memo(self, provisioner: str) -> Memo:
        return self._ports.ledger.memo(self._ports.cluster.name, f"{IMAGES}{provisioner}")

    def _write(self, memo: Memo, known: Mapping[str, Known]) -> bool:
        value = {kind: _out(image) for kind, image in sorted(known.items())}
        if value == memo.value:
            return True
        until = self._ports.clock.now() + _KEEP
        changed = replace(memo, value=value)
        return self._ports.ledger.change_memo(self._ports.cluster.name, changed, until)


def _outcome(newest: str, known: Known, now: datetime) -> str:
    if known.bad == newest and now - known.bad_at < _FORGIVEN:
        again = f"{known.bad_at + _FORGIVEN:%H:%M} UTC"
        return f"image {newest} did not register a node: it is tried again after {again}"
    return f"image {newest} is tried on one node first"


def _known(memo: Memo) -> dict[str, Known]:
    return {
        kind: Known(
            good=row["good"],
            trial=row["trial"],
            trial_at=datetime.fromisoformat(row["trial_at"]),
            bad=row["bad"],
            bad_at=datetime.fromisoformat(row["bad_at"]),
        )
        for kind, row in memo.value.items()
    }


def _out(other_image: Known) -> dict[str, Any]:
    return {
        "good": other_image.good,
        "trial": other_image.trial,
        "trial_at": other_image.trial_at.isoformat(timespec="seconds"),
        "bad": other_image.bad,
        "bad_at": other_image.bad_at.isoformat(timespec="seconds"),
    }
