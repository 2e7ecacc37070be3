"""The models of custom resources take long to import: functions that read none go without."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]


def test_only_what_reads_a_custom_resource_loads_the_models() -> None:
    program = (
        "import sys, shared.kube.cluster, functions.forwarder.views\n"
        "sys.exit(', '.join(name for name in sys.modules if '.manifests.api' in name) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
