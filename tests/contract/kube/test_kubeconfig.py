"""Kubeconfig files that cannot be used, and credential plugins that give nothing."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from shared.kube.kubeconfig import connect_kubeconfig
from shared.model.errors import PermanentError
from tests.contract.kube.scripted import Answer, scripted

_START = "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
_DEEP = 3000


@pytest.mark.parametrize(
    "content",
    [
        b"clusters:\n\t- name: c\n",
        b"clusters:\n- name: c\n  cluster:\n server: x\n",
        b"\x00\x01\xff\xfe",
        b"only text",
        b"- a\n- list\n",
        b"!!python/object:os.system {}\n",
        f"{_START}contexts: 3\n".encode(),
        f"{_START}contexts: [3]\n".encode(),
        f"{_START}contexts: [{{name: c, context: 3}}]\n".encode(),
        b"[" * _DEEP,
        b"",
        _START.encode(),
    ],
)
def test_a_kubeconfig_that_is_none_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config"
    path.write_bytes(content)
    with pytest.raises(PermanentError) as caught:
        connect_kubeconfig(str(path))
    told = str(caught.value)
    assert told.startswith(f"kubeconfig {path}: ")
    assert told.endswith("; name a readable file, or set KUBECONFIG to one")
    assert told.isprintable()
    assert len(told) < 600


@pytest.mark.parametrize("chosen", ["prd", None])
def test_a_context_that_is_not_there_is_told_with_those_there_are(
    tmp_path: Path, chosen: str | None
) -> None:
    there = [
        {"name": name, "context": {"cluster": "k", "user": "u"}} for name in ("dev", "prod", "test")
    ]
    path = tmp_path / "config"
    path.write_text(json.dumps({"kind": "Config", "current-context": "prd", "contexts": there}))
    with pytest.raises(PermanentError) as caught:
        connect_kubeconfig(str(path), context=chosen)
    assert str(caught.value) == f"kubeconfig {path}: no context prd; there are: prod, dev, test"


def plugged(path: Path, server: str, user: dict[str, Any], command: str, *words: str) -> str:
    """Write a kubeconfig file whose user asks a command for credentials; return its name."""
    called = {"apiVersion": "client.authentication.k8s.io/v1", "command": command, "args": words}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {**user, "exec": called}}],
    }
    path.write_text(json.dumps(document))
    return str(path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("sh", "-c", "echo SSO expired >&2; exit 3"), "exec sh: process returned 3. SSO"),
        (("nowhere-plugin",), "exec nowhere-plugin: [Errno 2] No such file"),
        (("echo", "hi"), "exec echo: failed to decode process output"),
        (("echo", '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "", "status": {}}'),
         "exec echo: missing token"),
    ],
)  # fmt: skip
def test_a_credential_plugin_that_fails_is_named_with_what_it_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    handlers = list(logging.root.handlers)
    with pytest.raises(PermanentError) as caught:
        connect_kubeconfig(plugged(tmp_path / "config", "http://127.0.0.1:1", {}, *words))
    told = str(caught.value)
    assert said in told
    assert told.endswith("; log in, as with aws sso login, or install it")
    assert told.isprintable()
    assert capfd.readouterr() == ("", "")
    assert logging.root.handlers == handlers


def test_a_credential_plugin_that_is_no_mapping_is_told_of(tmp_path: Path) -> None:
    path = tmp_path / "config"
    plugged(path, "http://127.0.0.1:1", {}, "x")
    document = json.loads(path.read_text())
    document["users"][0]["user"]["exec"] = "aws eks get-token"
    path.write_text(json.dumps(document))
    with pytest.raises(PermanentError, match="exec without a command: malformed request"):
        connect_kubeconfig(str(path))


def test_in_a_terminal_a_plugin_has_said_itself_what_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", None)
    monkeypatch.setattr("sys.stderr", None)
    config = plugged(tmp_path / "config", "http://127.0.0.1:1", {}, "false")
    with pytest.raises(PermanentError, match="exec false: failed, as it says above; log in"):
        connect_kubeconfig(config)


def test_a_plugin_that_works_or_is_not_needed_is_none_of_it(tmp_path: Path) -> None:
    status = {"token": "secret"}
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "", "status": status}
    with scripted([Answer(body={"a": 1}), Answer(body={"a": 2})]) as server:
        config = plugged(tmp_path / "a", server.url, {}, "echo", json.dumps(answer))
        assert connect_kubeconfig(config).get("/x") == {"a": 1}
        own = {"username": "me", "password": "mine"}
        config = plugged(tmp_path / "b", server.url, own, "false")
        assert connect_kubeconfig(config).get("/x") == {"a": 2}
        given = [request.headers["authorization"].split()[0] for request in server.requests]
    assert given == ["Bearer", "Basic"]
