"""What the cost model takes from elsewhere: prices of AWS, and what is assumed."""

from collections.abc import Mapping
from typing import Final

# Dollars, us-east-1, without any free tier.
# Source: https://aws.amazon.com/{lambda,sqs,eventbridge,dynamodb,step-functions,s3,cloudwatch}/pricing/
# (2026-08).
PRICES: Final[Mapping[str, float]] = {
    "lambda_arm_gb_second": 0.0000133334,
    "lambda_request": 0.20e-6,
    "sqs_request": 0.40e-6,
    "event": 1.00e-6,
    "ledger_read": 0.125e-6,
    "ledger_write": 0.625e-6,
    "transition": 25e-6,
    "s3_put": 5e-6,
    "s3_gb_month": 0.023,
    "alarm_metric": 0.10,
    "custom_metric": 0.30,
    "dashboard": 3.00,
    "log_gb": 0.50,
    "m5_large_hour": 0.096,
    "nat_hour": 0.045,
    "interface_endpoint_hour": 0.01,
}

# Not in the templates; generous, and to be replaced by what your account shows.
ASSUMED: Final[Mapping[str, tuple[float, str]]] = {
    "sweep_seconds": (0.8, "about ten calls of 50 ms and decoding, for one quiet cluster"),
    "sweep_reads": (11, "queries of a few rows each"),
    "heartbeat_seconds": (0.1, "one row is read and written"),
    "heartbeats_an_hour": (12, "functions/forwarder: one in five minutes"),
    "catalogues_a_day": (
        2,
        "functions/refresh_catalog/runtime: written when older than half a day",
    ),
    "tick_seconds": (0.2, "one question to S3"),
    "catalogue_seconds": (30, "two paginated descriptions and a price list"),
    "pollers": (5, "Lambda keeps five long polls of 20 s on a queue of the default mode"),
    "pods_a_node": (10, "so one pod in ten needs a node; nine go where room is bought already"),
    "buy_seconds": (1.5, "reading the cluster, planning, one CreateFleet"),
    "look_seconds": (0.35, "0.09 s of a core at 0.58 of one, and some twenty calls of 10 ms"),
    "buy_reads": (14, "measured: tests/infra/release/test_cost_measured.py"),
    "buy_writes": (24, "measured; units, an item in a transaction counts twice"),
    "buy_objects": (2, "measured: the decision and its launch, written to S3"),
    "node_more_writes": (9, "measured: for each node after the first of a plan"),
    "look_reads": (10, "measured"),
    "look_writes": (5, "measured: the lease, and the pods of a planned node in a row of over 1 KB"),
    "look_objects": (1, "measured: the decision"),
    "decision_bytes": (
        86_000,
        "measured: 84 KB, most of it the 840 types of a Region; kept for 30 days",
    ),
    "quiet_seconds": (20, "after so much quiet a burst takes the fast lane; bursts spread evenly"),
    "settle_seconds": (1.5, "there it waits for the burst's end: batch_idle and half a second"),
    "again_seconds": (0.3, "the queue brings the same event: the cluster is read, none waits"),
    "again_reads": (7, "measured"),
    "again_writes": (2, "measured: the lease"),
    "queue_requests": (3, "sent, received, deleted"),
    "node_transitions": (60, "registration, emptiness, expiration, and a drain of ten steps"),
    "node_messages": (8, "ready, empty, deleted; the last is said again while it drains"),
    "node_calls": (24, "steps of the timers, bind, and termination for each message"),
    "node_call_seconds": (0.3, "a few calls each"),
    "node_writes": (33, "measured: one that is launched alone, `make scale ROW=life`"),
    "log_bytes_a_call": (2000, "START, END, REPORT, one line of Dovetail, metrics"),
}
