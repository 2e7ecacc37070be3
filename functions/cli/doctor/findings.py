"""A finding of `dovetail doctor`; the modules beside this one create them."""

from collections.abc import Iterable, Iterator

from msgspec import Struct


class Finding(Struct, frozen=True, kw_only=True, order=True):
    """Something that is wrong or could be safer.

    Attributes:
        kind: Short name of the kind of problem.
        subject: What it is about.
        text: One line for people.
        command: What to run; empty when nothing has to be done by hand.
        repairable: Whether `--repair` fixes it.
        advice: Whether nothing is wrong, but something could be safer.
    """

    kind: str
    subject: str
    text: str
    command: str = ""
    repairable: bool = False
    advice: bool = False


def finding_lines(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield the findings as lines, each with what to run."""
    for finding in findings:
        yield f"  {finding.kind} {finding.subject}: {finding.text}"
        command = "dovetail doctor --repair" if finding.repairable else finding.command
        if command:
            yield f"    {'safer' if finding.advice else 'run'}: {command}"
