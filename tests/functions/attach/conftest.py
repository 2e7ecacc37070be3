from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.local.kube.server import EmbeddedKube
from tests.functions.attach.cluster import There


@pytest.fixture
def there(tmp_path: Path) -> Iterator[There]:
    with EmbeddedKube() as server:
        yield There(str(server.write_kubeconfig(tmp_path / "kubeconfig")))
