"""The demo with every function under its own role, and what the role lacks refused."""

from pathlib import Path

import pytest

from tests.e2e.conftest import Demo, TestCluster, play_enforced, played
from tests.e2e.enforced import LAUNCH_ROLE

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]


def test_inflate_needs_no_action_that_its_roles_do_not_allow(inflate: Demo) -> None:
    assert inflate.report, inflate.output
    assert inflate.denied == []


def test_no_command_line_shows_a_secret(inflate: Demo) -> None:
    assert inflate.report, inflate.output
    assert inflate.showing == []


@pytest.mark.slow
@pytest.mark.parametrize("action", ["ec2:CreateFleet", "eks:DescribeCluster"])
def test_a_policy_without_an_action_that_is_needed_fails_the_demo(
    cluster: TestCluster, tmp_path: Path, action: str
) -> None:
    play_enforced(tmp_path, cluster, action)
    ended = played(tmp_path)

    failures = [f["expectation"] for step in ended.report["steps"] for f in step["failures"]]
    assert ended.code == 1, ended.output
    assert "pods_running" in failures
    assert [LAUNCH_ROLE, action] in ended.denied
