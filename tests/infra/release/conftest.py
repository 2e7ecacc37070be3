from pathlib import Path

import pytest

from tools.release.make_release import Release


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """A release of this checkout, with a page of two lines."""
    page: Path = tmp_path_factory.mktemp("release") / "page"
    (page / "assets").mkdir(parents=True)
    (page / "index.html").write_text("<title>the page</title>")
    (page / "assets" / "index.js").write_text("0")
    return Release(version="0.1.0", epoch=1_700_000_000, page=page, commit="0" * 40)
