"""How a process says that it serves."""

import json
from pathlib import Path

from infra.local.ready import announce


def test_what_is_announced_is_one_line_that_only_its_owner_reads(tmp_path: Path) -> None:
    place = tmp_path / "ready.json"
    announce(place, {"url": "http://127.0.0.1:1", "admin_token": "t"})
    announce(place, {"url": "http://127.0.0.1:2", "admin_token": "t"})
    (line,) = place.read_text(encoding="utf-8").splitlines()
    assert json.loads(line) == {"url": "http://127.0.0.1:2", "admin_token": "t"}
    assert place.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [place]
