"""What a finding of `dovetail doctor` is made of; `doctor` and its neighbours make them."""

from dataclasses import dataclass
from typing import Final

# In a command: a value that only the reader knows.
DOLLARS: Final = "<dollars>"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Finding:
    """Something that is not as it should be.

    Attributes:
        kind: Short name, the same for the same kind of trouble.
        subject: What it is about.
        text: One line for people.
        command: What to run; empty when nothing has to be done by hand.
        repairable: Whether `--repair` sets it right.
        advice: Whether nothing is wrong, and something could be safer.
    """

    kind: str
    subject: str
    text: str
    command: str = ""
    repairable: bool = False
    advice: bool = False


def deploy_command(cluster: str, ceiling: float | str | None) -> str:
    """Return the command that deploys a cluster's attachment; other choices are given after it.

    Args:
        ceiling: Dollars per hour, as the attachment has them or as text; None for no ceiling.
    """
    most = "none" if ceiling is None else ceiling
    return f"npx cdk deploy --all -c clusters={cluster} -c max_price_per_hour={cluster}:{most}"
