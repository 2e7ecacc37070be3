"""DaemonSets, as far as their pods take room on nodes."""

from dataclasses import dataclass

from shared.model.pods import Scheduling


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonSet:
    """One DaemonSet.

    Attributes:
        scheduling: That of its pod template, tolerations of daemons included.
        problem: Why its controller makes no pods, empty when it does.
    """

    namespace: str
    name: str
    scheduling: Scheduling
    problem: str = ""
