"""Interrupt: handles EC2 and AWS Health events about Dovetail's instances."""

import functools
from collections.abc import Callable
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from shared.model.messages.notices import decode_notice
from shared.nodes.leave.interruption import Interruption, NodeIndex
from shared.ports import NodePorts
from shared.runtime.logs_and_metrics import emit_metrics, logger, metrics
from shared.runtime.python_gc import python_gc_afterwards
from shared.runtime.serve_events import dead_letters_invalid_events, serve_each
from shared.runtime.service_runtime import runtime_of
from shared.runtime.wiring import ActingRole
from shared.settings import TimerSettings


def _services(_: TimerSettings) -> Callable[[NodePorts], Interruption]:
    """Return what makes the service of a cluster; its index of nodes is kept for the process."""
    index = functools.cache(lambda _cluster: NodeIndex())
    return lambda ports: Interruption(ports, index(ports.cluster.name))


load_runtime = runtime_of(TimerSettings, ActingRole.TERMINATE, _services)


@python_gc_afterwards
@logger.inject_lambda_context
@metrics.log_metrics
@dead_letters_invalid_events
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Serve one event of EC2 or AWS Health; instances of others are left alone."""
    notice = decode_notice(event)
    runtime = load_runtime()

    def serve(instance_id: str) -> None:
        cluster = runtime.cluster_of(instance_id)
        if cluster is None:
            return
        report = runtime.service(cluster).run(notice, instance_id)
        emit_metrics(cluster, {"Interruptions": int(report.interrupted)})
        logger.info(
            "notice",
            cluster=cluster,
            kind=notice.kind.value,
            node=report.node,
            instance_id=instance_id,
            action=report.action,
            request=context.aws_request_id,
        )

    serve_each(event, notice.instance_ids, serve)
