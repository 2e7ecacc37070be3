"""What services report, as log lines and metrics."""

from shared.model.codec import to_plain
from shared.provisioning.report import ProvisionReport
from shared.provisioning.sweep.sweep import SweepReport
from shared.runtime.logs_and_metrics import emit_metrics, logger


def report_provision(cluster: str, report: ProvisionReport, *, lane: str) -> None:
    """Log one provisioning invocation and emit its metrics."""
    logger.info(
        "provisioned" if report.leading else "told the leader to plan once more",
        cluster=cluster,
        lane=lane,
        plan_id=report.plans[-1] if report.plans else "",
        report=to_plain(report),
    )
    if not report.leading:
        emit_metrics(cluster, {"LeaseContention": 1})
        return
    for line in report.refusals:
        logger.warning("EC2 refuses launches", cluster=cluster, refusal=line)
    for line in report.shadow_purchases:
        logger.info("compared in shadow mode", cluster=cluster, purchase=line)
    held = 1 if report.held_back else 0
    values: dict[str, float] = {
        "BrakesApplied": held + report.nodes_over_ceiling + report.pods_runaway,
        "FailedLaunches": report.failed_attempts,
        "Launches": report.launches,
        "NodesDisrupted": report.nodes_disrupted,
        "NodesLaunched": report.nodes_launched,
        "OfferingsRefused": report.offerings_refused,
        "LaunchesRefused": len(report.refusals),
        "PodsPlaced": report.pods_placed,
        "PodsPlanned": report.pods_planned,
        "PodsRejected": report.pods_rejected,
        "PodsSetAside": report.pods_set_aside,
        "PodsUnschedulable": report.pods_unschedulable,
        "Throttles": report.throttled,
        "UnknownErrorCodes": report.unknown_codes,
    }
    if report.ceiling_percent is not None:
        values["CeilingUsed"] = report.ceiling_percent
    if report.lower_bound_micros_per_hour:
        excess = report.cost_micros_per_hour - report.lower_bound_micros_per_hour
        values["DollarsPerHourBought"] = report.cost_micros_per_hour / 1_000_000
        values["PlanGap"] = 100 * excess / report.lower_bound_micros_per_hour
    emit_metrics(cluster, values)


def report_sweep(cluster: str, report: SweepReport) -> None:
    """Log one sweep of a cluster and emit its metrics."""
    total = sum(report.findings.values())
    log = logger.warning if total else logger.info
    log("swept", cluster=cluster, findings=dict(report.findings))
    values: dict[str, float] = {"PodsWaiting": report.pods_waiting, "SweepFindings": total}
    if report.pods_waiting:
        values["LongestWait"] = report.longest_wait_seconds
    emit_metrics(cluster, values)
