"""Answers of AWS that the emulator never gives."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from shared.aws.session import Session


@contextmanager
def canned(
    session: Session, service: str, operation: str, *answers: Any, role: str = ""
) -> Iterator[list[dict[str, Any]]]:
    """Answer the next calls of an operation, one each; later ones reach the emulator again.

    An answer is a mapping (parsed response), an exception to raise, a (status, code) pair for an
    error response, or None to let the call through. Yields the parameters of the calls.
    """
    client = session.client(service, role=role)
    left = list(answers)
    seen: list[dict[str, Any]] = []
    name = f"before-call.{service}.{operation}"

    def answer(params: dict[str, Any], **_: Any) -> tuple[Any, dict[str, Any]] | None:
        seen.append(params)
        chosen = left.pop(0) if left else None
        if chosen is None:
            return None
        if isinstance(chosen, Exception):
            raise chosen
        if isinstance(chosen, tuple):
            status, code = chosen[0], chosen[1]
            more = chosen[2] if len(chosen) > 2 else {}
            error = {"Error": {"Code": code, "Message": f"said {code}"}, **more}
            return SimpleNamespace(status_code=status), {
                **error,
                "ResponseMetadata": {"HTTPStatusCode": status},
            }
        return SimpleNamespace(status_code=200), {
            "ResponseMetadata": {"HTTPStatusCode": 200},
            **chosen,
        }

    client.meta.events.register_first(name, answer)
    try:
        yield seen
    finally:
        client.meta.events.unregister(name, answer)
