"""What a finding of `dovetail doctor` is made of; `doctor` and its neighbours make them."""

from dataclasses import dataclass


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
