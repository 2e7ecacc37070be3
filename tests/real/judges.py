"""Programs of others that judge user data: the kubelet, cloud-init, bash."""

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.real.nodes import kubelet_command
from tests.real.user_data import Boot, Instance, merged, reserved_millicores

# cloud-init has no command that shows the parts it would run. It is no dependency of the project:
# its own interpreter runs this.
_PARTS: Final = """
import json, sys
from cloudinit.user_data import UserDataProcessor
from cloudinit.util import fully_decoded_payload
read = []
for text in json.load(sys.stdin):
    message = UserDataProcessor(None).process(text)
    parts = [part for part in message.walk() if not part.is_multipart()]
    texts = [fully_decoded_payload(part) for part in parts]
    texts = [text.decode() if isinstance(text, bytes) else text for text in texts]
    read.append([(part.get_content_type(), text) for part, text in zip(parts, texts)])
print(json.dumps(read))
"""


def kubelet_verdicts(program: Path, folder: Path, boots: Sequence[Boot]) -> list[str]:
    """Return why the kubelet would not start, for each command line; empty where it would."""
    lines = [
        kubelet_command(boot, folder=folder, name=str(number), user={}, machine={})[1:]
        for number, boot in enumerate(boots)
    ]
    file = folder / "lines.json"
    file.write_text(json.dumps(lines), encoding="utf-8")
    said = _run([str(program), "check", str(file)])
    return list(json.loads(said))


def nodeadm_boots(
    program: Path, folder: Path, told: Sequence[tuple[str, str, Instance]]
) -> list[Boot]:
    """Return how nodeadm starts the kubelets of machines.

    Its release is of 2024 and names no node; what is reserved of the CPU is computed for the
    machine that runs it, and here for the machine's own cores by the formula.

    Args:
        told: User data, instance type and instance of each.
    """
    file = folder / "machines.json"
    machines = [
        {"userData": text, "type": kind, "zone": instance.zone, "id": instance.id}
        for text, kind, instance in told
    ]
    file.write_text(json.dumps(machines), encoding="utf-8")
    boots = []
    for (_, _, instance), said in zip(
        told, json.loads(_run([str(program), str(file)])), strict=True
    ):
        assert not said["error"], said["error"]
        config, reserved = said["config"], said["config"]["kubeReserved"]
        assert reserved["cpu"] == f"{reserved_millicores(said['cores'])}m"
        reserved["cpu"] = f"{reserved_millicores(instance.cores)}m"
        boots.append(
            Boot(
                cluster="",
                endpoint="",
                authority="",
                # As the kubelet does with what is in its folder of configurations: RFC 7386.
                config=merged(config, said["dropIn"]),
                flags=(
                    *(f"--{name}={value}" for name, value in sorted(said["flags"].items())),
                    f"--hostname-override={instance.dns_name}",
                    *(said["more"] or ()),
                ),
            )
        )
    return boots


def kubelets_offer(
    program: Path, folder: Path, machines: Sequence[tuple[Boot, Mapping[str, str]]]
) -> list[dict[str, Any]]:
    """Return what kubelets would offer to pods, by how they are started and what they are on."""
    asked = []
    for number, (boot, capacity) in enumerate(machines):
        line = kubelet_command(boot, folder=folder, name=str(number), user={}, machine={})
        asked.append({"arguments": line[1:], "capacity": dict(capacity)})
    file = folder / "kubelets.json"
    file.write_text(json.dumps(asked), encoding="utf-8")
    return list(json.loads(_run([str(program), "allocatable", str(file)])))


def cloud_init() -> Path | None:
    """Return cloud-init's program, or None where it is not installed."""
    found = shutil.which("cloud-init")
    return None if found is None else Path(found)


def cloud_init_parts(program: Path, texts: Sequence[str]) -> list[list[tuple[str, str]]]:
    """Return type and text of the parts that cloud-init makes of each user data."""
    interpreter = program.read_text(encoding="utf-8").partition("\n")[0].removeprefix("#!")
    said = _run([*interpreter.split(), "-c", _PARTS], text=json.dumps(list(texts)))
    return [[(kind, text) for kind, text in parts] for parts in json.loads(said)]


def cloud_config_verdict(program: Path, folder: Path, text: str) -> str:
    """Return what the schema of cloud-init finds wrong in a cloud-config; empty if nothing."""
    file = folder / "cloud-config.yaml"
    head = "" if text.startswith("#cloud-config") else "#cloud-config\n"
    file.write_text(f"{head}{text}", encoding="utf-8")
    command = [str(program), "schema", "--config-file", str(file)]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if said.returncode == 0 else said.stdout + said.stderr


def bash_arguments(script: str, program: str) -> list[str]:
    """Return the arguments with which bash calls a program in the last line of a script."""
    line = script.splitlines()[-1].replace(program, "printf '%s\\0'", 1)
    return _run(["bash", "-e", "-c", line]).split("\0")[:-1]


def bash_verdict(script: str) -> str:
    """Return what is wrong in the syntax of a script; empty if nothing."""
    command = ["bash", "-n"]
    said = subprocess.run(command, input=script, capture_output=True, text=True, check=False)
    return said.stderr


def _run(command: Sequence[str], text: str = "") -> str:
    said = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    return said.stdout
