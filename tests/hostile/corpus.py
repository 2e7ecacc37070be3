"""How the corpus is tried: a thousand inputs in a batch, each batch with a seed of its own."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.extent import WHOLE, commits

BATCH_SIZE: Final = 1000 if WHOLE else 250
_BATCHES: Final = 100
_ROTATED: Final = 4
Input = TypeVar("Input")

# `make verify` tries all batches, `make verify-commit` the first of each kind. `make test` tries a
# quarter as many inputs, of a seed that changes with the commit.
_FIRST: Final = 0 if WHOLE else -1 - commits() % _ROTATED
batches = pytest.mark.parametrize(
    "batch",
    [_FIRST, *(pytest.param(number, marks=pytest.mark.slow) for number in range(1, _BATCHES))],
)


def try_batch(
    batch: int,
    inputs: st.SearchStrategy[Input],
    check: Callable[[Input], object],
    size: int = BATCH_SIZE,
) -> None:
    """Check a batch of inputs; the same number yields the same inputs in the same run.

    Hypothesis also draws constants of the product's modules that are loaded by then: a batch alone
    may differ a little from the same one among others.

    A failing input is made smaller first, then shown.

    Args:
        batch: Its number, the seed.
        inputs: What they are drawn from.
        check: Fails for an input that does harm.
        size: How many inputs there are.
    """
    tried = 0

    @seed(batch)
    @settings(
        max_examples=size,
        database=None,
        deadline=None,
        derandomize=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(inputs)
    def checked(drawn: Input) -> None:
        nonlocal tried
        tried += 1
        check(drawn)

    checked()
    assert tried >= size


# -- texts and values --------------------------------------------------------------------------

# Texts that mean something else than themselves to a shell, systemd, a URL, a command line, MIME,
# YAML, TOML, JSON, HTML or a terminal, and texts at the edge of what names may be.
TEXTS: Final = (
    *("x --anonymous-auth=true --authorization-mode=AlwaysAllow", "x,node-role=boss"),
    "x\nExecStartPre=/bin/touch /root/owned\nEnvironment='A=b",
    *("$(reboot)", "`reboot`", "'; reboot; '", "${HOME}", "%n", "\\", '"', "'", "a\r\nb", "a\tb"),
    *("../pods", "../namespaces/kube-system/secrets/x", "../../../pods?x=", "x/status", "x/../y"),
    *("..", ".", "/", "x?limit=0", "x#y", "a%2fb", "%2e%2e", "a,b=c", "x\\,y", "ns/name"),
    *("--B", "--//", "MIME-Version: 1.0", "[settings]", '"""', "'''", "!!python/name:os.system"),
    *("<script>", "]]>", "\x1b[2J", "\x00", "\x7f", "\u2028", "\ud800", "\u202e", "é€", "🙂"),
    *("", " ", " x", "x ", "-", "a" * 63, "a" * 64, "a" * 254, "a." * 200, "A_b.C-d", "0", "-1"),
    *("i-../../x", "arn:aws:iam::1:role/x", "sg-1,sg-2", "*", "true", "null", "~"),
    *("fe80::1%x --anonymous-auth=true", "fe80::1%$(reboot)", "\u0663%", "\u0663s", "\u0663"),
    *("1Ei", "1e400", "-1", "1n", "nan", "9" * 400, "0x10", "1.5", "5%", "100%", "1h", "0s"),
    *("9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00", "2026-01-01T00:00:00Z", "2026-13-01"),
    *("karpenter.sh/x", "dovetail.dev/drain-deadline", "kubernetes.io/hostname", "a/b/c", "a//b"),
    *("In", "NotIn", "Exists", "Gt", "Lt", "Equal", "NoSchedule", "NoExecute", "Pending", "True"),
)
texts = st.one_of(st.sampled_from(TEXTS), st.text(max_size=12))
_leaves: Final = st.one_of(
    texts,
    st.sampled_from(
        (None, True, False, 0, 1, -1, 2**31, 2**63 - 1, 2**63, 10**400, 0.5, 1e308, -0.0)
    ),
    st.sampled_from((float("nan"), float("inf"))),
)
values: Final = st.recursive(
    _leaves,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=5,
)


@st.composite
def mutated(
    draw: st.DrawFn, documents: Sequence[Mapping[str, Any]], most: int = 3
) -> dict[str, Any]:
    """Draw one of the documents and change up to so many places of it.

    A place gets another value, one that stands elsewhere in the document, or none; an object gets
    a field more, a list an item many times.
    """
    document = deepcopy(dict(draw(st.sampled_from(documents))))
    for _ in range(draw(st.integers(1, most))):
        places = _places(document)
        if not places:
            break
        parent, key = draw(st.sampled_from(places))
        match draw(st.sampled_from(("text", "value", "other", "none", "more", "many"))):
            case "text":
                parent[key] = draw(texts)
            case "value":
                parent[key] = draw(values)
            case "other":
                other, place = draw(st.sampled_from(places))
                parent[key] = deepcopy(other[place])
            case "none":
                del parent[key]
            case "more" if isinstance(parent[key], dict):
                parent[key][draw(texts)] = draw(values)
            case "many" if isinstance(parent[key], list):
                parent[key] *= draw(st.sampled_from((2, 20)))
            case _:
                parent[key] = [parent[key]]
    return document


def _places(document: Any) -> list[tuple[Any, Any]]:
    """Return what contains each value of a document, and under which key."""
    found: list[tuple[Any, Any]] = []
    rest = [document]
    while rest:
        parent = rest.pop()
        for key in list(parent) if isinstance(parent, dict) else range(len(parent)):
            found.append((parent, key))
            if isinstance(parent[key], (dict, list)):
                rest.append(parent[key])
    return found
