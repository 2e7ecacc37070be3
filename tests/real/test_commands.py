"""kubectl takes the commands that the documents tell people to type."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, blocks, shown
from tests.real.cluster import Cluster

pytestmark = pytest.mark.timeout(300)

INLINE = re.compile(r"`([^`\n]*\bkubectl [^`\n]+)`")
INDENTED = re.compile(r"^ {4,}(\S.*\bkubectl .*|kubectl .*)$", re.MULTILINE)
INNER = re.compile(r"\$\(([^()]*)\)")
# Placeholders on a page, and their values.
BLANKS = (
    (re.compile(r"(?<= node )\{\}"), "x"),
    (re.compile(r"<[a-z-]+>"), "x"),
    (re.compile(r"\$\{?[A-Z_]+\}?"), "x"),
    (re.compile(r"\{\}"), "node/x"),
)
# Commands that sentences name without what they act on.
NAMES = frozenset(
    {
        "apply",
        "apply -f",
        "apply -k",
        "auth can-i",
        "create",
        "create job",
        "delete node",
        "delete nodepool",
        "delete pod",
        "describe",
        "explain",
        "get",
        "rollout restart",
        "top",
    }
)
# These change nothing; `rollout restart` finds no Deployment. The others are not carried out.
READS = frozenset({"get", "describe", "logs", "rollout", "wait", "can-i"})
# The server has understood the request.
UNDERSTOOD = re.compile(
    r'(error: )?error from server \((NotFound|AlreadyExists)\)|The Provisioner "[\w-]+" is invalid',
    re.IGNORECASE,
)
COMPLAINT = re.compile(r"error|unable|the \w+ \"", re.IGNORECASE)


def spoken(page: Path) -> list[str]:
    """Return every kubectl command of a page, without pipes and with its blanks filled."""
    text = page.read_text(encoding="utf-8")
    lines = [
        *(line for body in blocks(page, "sh", "text") for line in body.splitlines()),
        *(other_shown.command for other_shown in shown(page)),
        *INDENTED.findall(text),
        *INLINE.findall(text),
    ]
    found = {command: None for line in lines for command in _parts(line.split("  #")[0])}
    return list(found)


def _parts(line: str) -> Iterator[str]:
    for inner in INNER.findall(line):
        yield from _parts(inner)
    line = INNER.sub("node/x", line)
    for pattern, filled in BLANKS:
        line = pattern.sub(filled, line)
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&<>")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, "|"]:
        if not set(word) <= set("|;&<>"):
            words.append(word)
            continue
        if words[:1] == ["xargs"] and "kubectl" in words[:2]:
            # What is piped to it comes last.
            words.append("x")
        if "kubectl" in words:
            yield shlex.join(words[words.index("kubectl") + 1 :])
        words = []


@pytest.fixture(scope="module")
def kubectl(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> "Kubectl":
    found = Kubectl(cluster, tmp_path_factory.mktemp("kubectl"))
    files = [f"--filename=infra/cluster/{name}.yaml" for name in ("provisioners", "node_templates")]
    found.run(["apply", *files])
    found.run(["apply", "--kustomize=infra/cluster/node_pools"])
    found.run(["create", "namespace", "dovetail"])
    found.run(["wait", "--for=condition=Established", "crd", "--all"])
    return found


class Kubectl:
    """kubectl of the newest minor as administrator of a cluster that has our kinds."""

    def __init__(self, cluster: Cluster, cache: Path) -> None:
        self._program = str(cluster.program)
        self._environment = {
            **os.environ,
            "KUBECONFIG": str(cluster.kubeconfig()),
            "KUBECACHEDIR": str(cache),
        }

    def run(self, arguments: list[str]) -> tuple[int, str]:
        """Return the exit code, and what is written to the standard error."""
        ended = subprocess.run(
            [self._program, "kubectl", *arguments],
            cwd=ROOT,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return ended.returncode, ended.stderr

    def refuses(self, command: str) -> str:
        """Return what kubectl or the server does not understand in a command; empty if nothing."""
        words = shlex.split(command)
        if command in NAMES:
            words = [word for word in words if not word.startswith("-")] + ["--help"]
        elif not READS & set(words):
            words.append("--dry-run=server")
        code, said = self.run(words)
        complaints = [line for line in said.splitlines() if COMPLAINT.match(line)]
        understood = bool(complaints) and all(map(UNDERSTOOD.match, complaints))
        # `auth can-i` ends with 1 to say no, without an error.
        understood |= words[:2] == ["auth", "can-i"] and not said
        return "" if code == 0 or understood else f"kubectl {command}: ended with {code}: {said}"


PAGES_WITH_COMMANDS = {str(page.relative_to(ROOT)): page for page in PAGES if spoken(page)}


@pytest.mark.parametrize("page", PAGES_WITH_COMMANDS)
def test_kubectl_understands_every_command_of_a_page(kubectl: Kubectl, page: str) -> None:
    found = spoken(PAGES_WITH_COMMANDS[page])
    assert [why for command in found if (why := kubectl.refuses(command))] == []


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("gett nodes", "unknown command"),
        ("get nodes --selectr a=b", "unknown flag"),
        ("get provisionerz", "doesn't have a resource type"),
        ("get nodes -o jsonpath='{.items[*}'", "unterminated array"),
        ("get events --field-selector colour=red", "field label not supported"),
        ("apply -f docs/no-such-file.yaml", "does not exist"),
        ("annotate provisioner default", "at least one annotation update is required"),
        ("delete nodes", "no name was specified"),
    ],
)
def test_what_kubectl_does_not_understand_is_noticed(
    kubectl: Kubectl, command: str, words: str
) -> None:
    assert words in kubectl.refuses(command)


def test_commands_are_found_within_others() -> None:
    line = (
        "kubectl label $(kubectl get nodes -o name | tail -n 1) a=b | xargs -I{} kubectl patch {}"
    )
    assert list(_parts(line)) == ["get nodes -o name", "label node/x a=b", "patch node/x"]
