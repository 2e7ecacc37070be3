"""What services report, as log lines and metrics."""

import dataclasses

from shared.runtime.observability import count, logger
from shared.services.provisioning import ProvisionReport
from shared.services.sweeping import SweepReport


def report_provision(cluster: str, report: ProvisionReport, *, lane: str) -> None:
    """Log one provisioning invocation and count what it bought."""
    logger.info(
        "provisioned" if report.leading else "told the leader to plan once more",
        cluster=cluster,
        lane=lane,
        plan_id=report.plans[-1] if report.plans else "",
        report=dataclasses.asdict(report),
    )
    if not report.leading:
        count("LeaseContention", 1)
        return
    count("PodsPlanned", report.pods_planned)
    count("PodsUnschedulable", report.pods_unschedulable)
    count("NodesLaunched", report.nodes_launched)
    count("Launches", report.launches)
    count("DollarsPerHourBought", report.cost_micros_per_hour / 1_000_000, unit="None")
    if report.lower_bound_micros_per_hour:
        excess = report.cost_micros_per_hour - report.lower_bound_micros_per_hour
        count("PlanGap", 100 * excess / report.lower_bound_micros_per_hour, unit="Percent")


def report_sweep(cluster: str, report: SweepReport) -> None:
    """Log one look over a cluster and count what it found."""
    findings = dataclasses.asdict(report)
    total = sum(findings.values())
    log = logger.warning if total else logger.info
    log("swept", cluster=cluster, findings=findings)
    count("SweepFindings", total)
