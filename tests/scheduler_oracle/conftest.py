"""Adds up what the second opinion saw, over all workers, and says it at the end."""

from collections import Counter

import pytest

from tests.scheduler_oracle.running import summary


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counts: Counter[str] = Counter()
    firsts = []
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, ()):
            for name, value in getattr(report, "user_properties", ()):
                if name == "opinion" and report.when == "call":
                    counts.update(value)
                elif name == "opinion_first":
                    firsts.append(value)
    if firsts:
        terminalreporter.write_line("")
        for line in summary(dict(counts), min(firsts)):
            terminalreporter.write_line(line)
