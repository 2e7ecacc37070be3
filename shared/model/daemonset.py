"""DaemonSets, as far as their pods take room on nodes."""

from dataclasses import dataclass

from shared.model.pods import Scheduling


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonSet:
    """One DaemonSet; `scheduling` is that of its pod template, tolerations of daemons included."""

    namespace: str
    name: str
    scheduling: Scheduling
