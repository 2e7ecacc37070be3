"""Counts which cases of each checklist were kept by a test that passed in this very run.

Reports of all workers arrive here, so the count is right with any number of them. A run of a
whole checklist folder fails when a mapped test did not run or did not pass.
"""

from pathlib import Path
from typing import Final

import pytest

from tests.karpenter_cases.checklists import Case, Checklist, Mark, checklists

_SHOWN: Final = 20


class Count:
    """What became of each test of this run."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._lists = checklists()
        self._passed: dict[str, set[str]] = {}
        self._not_passed: dict[str, set[str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self._note(self._passed, report.nodeid)
        elif not report.passed:
            self._note(self._not_passed, report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if session.exitstatus == pytest.ExitCode.OK and any(
            self._lost(checklist) for checklist in self._lists if self._is_whole(checklist)
        ):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for checklist in self._lists:
            kept = [case for case in checklist.tested if self._is_kept(case)]
            if not kept and not self._is_whole(checklist):
                continue
            passing = sum(case.mark == Mark.PASSES for case in kept)
            refused = len(kept) - passing
            line = f"{checklist.name} cases: {passing} of {len(checklist.cases)}"
            for count, words in (
                (len(checklist.marked(Mark.DIFFERS)), "differ for a written reason"),
                (refused, "are not offered, and refused"),
                (len(checklist.marked(Mark.NOT_YET)), "are not yet kept"),
            ):
                line += f", {count} {words}" if count else ""
            terminalreporter.write_line(line)
            if self._is_whole(checklist):
                for line in self._lost(checklist)[:_SHOWN]:
                    terminalreporter.write_line(f"  not kept: {line}", red=True)

    def _lost(self, checklist: Checklist) -> list[str]:
        return [
            f"{case.group}: {case.name}: {test} did not run and pass"
            for case in checklist.tested
            for test in case.tests
            if not self._passes(test) and self._is_asked_for(Path(test.partition("::")[0]))
        ]

    def _is_kept(self, case: Case) -> bool:
        return all(map(self._passes, case.tests))

    def _passes(self, test: str) -> bool:
        return test in self._passed and test not in self._not_passed

    def _is_asked_for(self, path: Path) -> bool:
        given = [
            Path(self._config.invocation_params.dir, arg).resolve() for arg in self._config.args
        ]
        return any((self._config.rootpath / path).is_relative_to(asked) for asked in given)

    def _is_whole(self, checklist: Checklist) -> bool:
        """Whether this run was asked for all tests of the folder, and did not leave them out."""
        options = self._config.option
        if options.keyword or getattr(options, "lf", False) or options.deselect:
            return False
        prefix = checklist.folder.relative_to(self._config.rootpath).as_posix()
        ran = any(value.startswith(prefix) for value in (*self._passed, *self._not_passed))
        return ran and self._is_asked_for(checklist.folder)

    @staticmethod
    def _note(found: dict[str, set[str]], node_id: str) -> None:
        """Note a test under its own name and, one of a family, under the family's too."""
        for value in {node_id, node_id.partition("[")[0]}:
            found.setdefault(value, set()).add(node_id)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Count(config), "cases-count")
