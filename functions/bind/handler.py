"""Bind: initializes nodes whose kubelet became Ready, and binds their pods."""

from collections.abc import Callable
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from shared.model.policy import BindingPolicy, LaunchPolicy
from shared.nodes.join.node_binding import Binding
from shared.ports import NodePorts
from shared.runtime.logs_and_metrics import emit_metrics, logger, metrics
from shared.runtime.serve_events import dead_letters_invalid_events, serve_nodes
from shared.runtime.service_runtime import runtime_of
from shared.runtime.wiring import ActingRole
from shared.settings import BindSettings


def _services(settings: BindSettings) -> Callable[[NodePorts], Binding]:
    policy = LaunchPolicy(binding_policy=BindingPolicy(settings.binding_policy))
    return lambda ports: Binding(ports, policy)


load_runtime = runtime_of(BindSettings, ActingRole.INSIDE, _services)


@logger.inject_lambda_context
@metrics.log_metrics
@dead_letters_invalid_events
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Serve one `node-ready` event; the current state of each of its nodes is read."""

    def serve(service: Binding, cluster: str, node_name: str) -> None:
        report = service.run(node_name)
        emit_metrics(
            cluster,
            {
                "NodesInitialized": int(report.initialized),
                "PodsBoundAtReady": report.pods_bound,
                "PodsLeftToScheduler": report.pods_left_to_scheduler,
                "BindFailures": report.pods_refused,
            },
        )
        logger.info(
            "node initialized" if report.initialized else "node not ready yet",
            cluster=cluster,
            node=report.node,
            waiting_for=report.waiting_for,
            pods_bound=report.pods_bound,
            request=context.aws_request_id,
        )

    serve_nodes(load_runtime(), event, serve)
