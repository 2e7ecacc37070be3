"""The commands of `dovetail` that need no checkout."""

from functions.cli.attach.attach_command import mount_attach
from functions.cli.catalog import mount_catalog
from functions.cli.doctor.doctor_command import mount_doctor
from functions.cli.doctor.why_command import mount_why
from functions.cli.migrate.migrate_command import mount_migrate
from functions.cli.parser import Subparsers
from functions.cli.plan.plan_command import mount_plan
from functions.cli.plan.what_if_command import mount_what_if
from functions.cli.report.report_command import mount_report
from functions.cli.shadow.shadow_command import mount_shadow
from functions.cli.watch.watch_command import mount_watch_commands


def mount_commands(subparsers: Subparsers) -> None:
    """Add the commands; each parsed namespace has a `run` that returns the exit code."""
    mount_plan(subparsers)
    mount_catalog(subparsers)
    mount_what_if(subparsers)
    mount_report(subparsers)
    mount_shadow(subparsers)
    mount_attach(subparsers)
    mount_doctor(subparsers)
    mount_migrate(subparsers)
    mount_why(subparsers)
    mount_watch_commands(subparsers)
