"""When CronJobs start their runs."""

from collections.abc import Iterator
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from functions.cli.plan.reading.checks import required_section
from functions.cli.plan.reading.documents import Document
from shared.manifests.custom_resources.schedules import read_schedule


def cron_starts(document: Document, now: datetime) -> Iterator[datetime]:
    """Return the times, in order, at which a CronJob starts a run from now on.

    Raises:
        InvalidDocumentError: If its schedule or its time zone cannot be read.
    """
    spec = required_section(document, "spec")
    if spec.flag("suspend"):
        return iter(())
    schedule, time_zone = spec.text("schedule"), spec.text("timeZone") or "UTC"
    try:
        return CronSim(read_schedule(schedule), now.astimezone(ZoneInfo(time_zone)))
    except ZoneInfoNotFoundError as error:
        remedy = "write a name such as Europe/Berlin"
        raise document.invalid("spec.timeZone", time_zone, remedy) from error
    except (CronSimError, ValueError) as error:
        remedy = "write five fields of cron, such as */5 * * * *"
        raise document.invalid("spec.schedule", schedule, remedy) from error
