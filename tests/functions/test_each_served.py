"""An event about several nodes or instances: each of them is served, also after one has failed."""

import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from functions.bind.handler import handler as bind
from functions.emptiness.handler import handler as emptiness
from functions.interrupt.handler import handler as interrupt
from functions.termination.handler import handler as termination
from shared.model import labels as keys
from shared.model.errors import NotAttachedError, UnauthorizedError, UnavailableError
from shared.model.messages.message import MessageKind, ObjectRef, encode, make_message
from shared.nodes.join.node_binding import BindReport
from shared.nodes.leave.interruption import Interruption
from shared.runtime.serve_events import serve_each
from tests.builders import NOW, node, provisioner
from tests.functions.conftest import UNREACHABLE, Context, Runtime
from tests.unit.worlds import World, failing, instead

# Running functions ignore this one; pytest replaces their filters with its own.
pytestmark = pytest.mark.filterwarnings("ignore:No application metrics to publish")
Use = Callable[[str, Any], None]
CONTEXT = Context()
ERRORS = [
    pytest.param(UNREACHABLE, True, id="retryable"),
    pytest.param(ValueError("of its data"), True, id="unexpected"),
    pytest.param(UnauthorizedError("403"), False, id="permanent"),
    pytest.param(NotAttachedError("cluster 'gone' is not attached"), False, id="not attached"),
]


@pytest.mark.parametrize(("error", "again"), ERRORS)
def test_an_instance_that_cannot_be_served_keeps_no_other_from_it(
    use: Use, dead: list[tuple[str, str]], error: Exception, *, again: bool
) -> None:
    gone, fine = World(), World(provisioner(), node())
    gone.ledger.instances["i-gone"] = "gone"
    fine.ledger.instances["i-n1"] = "fine"
    instead(gone.cluster, "nodes", failing(error))
    use("interrupt", Runtime(Interruption, gone=gone, fine=fine))
    notice: dict[str, Any] = {
        "source": "aws.health",
        "detail-type": "AWS Health Event",
        "detail": {"affectedEntities": [{"entityValue": "i-gone"}, {"entityValue": "i-n1"}]},
    }
    with pytest.raises(type(error)) if again else contextlib.nullcontext():
        interrupt(notice, CONTEXT)
    assert fine.node.annotations[keys.REMOVAL_REASON] == "scheduled-change"
    assert dead == ([] if again else [(json.dumps(notice), f"i-gone: {error}")])


class OneFails:
    """A double of a function's service: of its nodes the first cannot be served."""

    def __init__(self, error: Exception) -> None:
        self._error = error
        self.served: list[str] = []

    def run(self, name: str) -> BindReport:
        self.begin(name)
        return BindReport(node=name)

    def begin(self, name: str) -> str:
        if name == "n1":
            raise self._error
        self.served.append(name)
        return "started"


@pytest.mark.parametrize(
    ("name", "handler", "kind"),
    [
        ("bind", bind, MessageKind.NODE_READY),
        ("emptiness", emptiness, MessageKind.NODE_EMPTY),
        ("termination", termination, MessageKind.NODE_DELETED),
    ],
)
@pytest.mark.parametrize(("error", "again"), ERRORS)
def test_a_node_that_cannot_be_served_keeps_no_other_from_it(
    name: str,
    handler: Callable[..., Any],
    kind: MessageKind,
    use: Use,
    dead: list[tuple[str, str]],
    error: Exception,
    *,
    again: bool,
) -> None:
    service = OneFails(error)
    use(name, Runtime(lambda _: service, test=World()))
    nodes = [ObjectRef(name="n1"), ObjectRef(name="n2")]
    with pytest.raises(type(error)) if again else contextlib.nullcontext():
        handler(encode(make_message(kind, "test", NOW, objects=nodes)), CONTEXT)
    assert service.served == ["n2"]
    assert [why for _, why in dead] == ([] if again else [f"n1: {error}"])


def test_what_fails_for_good_is_put_aside_once_and_when_nothing_is_left_to_repeat(
    dead: list[tuple[str, str]],
) -> None:
    failures: dict[str, Exception] = {"n1": UnauthorizedError("403"), "n2": UNREACHABLE}

    def serve(name: str) -> None:
        if name in failures:
            raise failures[name]

    with pytest.raises(UnavailableError):
        serve_each({}, ("n1", "n2", "n3"), serve)
    assert dead == []
    del failures["n2"]
    serve_each({}, ("n1", "n2", "n3"), serve)
    assert dead == [("{}", "n1: 403")]
