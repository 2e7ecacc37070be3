import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.local.aws.lab import Lab


def fill(lab: Lab, url: str, count: int) -> None:
    for start in range(0, count, 10):
        entries = [{"Id": str(row), "MessageBody": str(start + row)} for row in range(10)]
        lab.aws.client("sqs").send_message_batch(QueueUrl=url, Entries=entries)


def drain(lab: Lab, url: str) -> list[str]:
    """Take and delete until an empty answer; return the bodies."""
    client = lab.aws.client("sqs")
    bodies: list[str] = []
    while True:
        messages = client.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        if not messages:
            return bodies
        bodies += [row["Body"] for row in messages]
        entries = [
            {"Id": str(index), "ReceiptHandle": row["ReceiptHandle"]}
            for index, row in enumerate(messages)
        ]
        client.delete_message_batch(QueueUrl=url, Entries=entries)


def cpu_seconds(pid: int) -> float:
    """Return what a process has used of the processor: how busy the machine is plays no part."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[-1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_receivers_beside_each_other_never_share_a_message(lab: Lab) -> None:
    url, _ = lab.queue()
    fill(lab, url, 200)
    with ThreadPoolExecutor(6) as threads:
        taken = [
            body for bodies in threads.map(lambda _: drain(lab, url), range(6)) for body in bodies
        ]
    assert sorted(map(int, taken)) == list(range(200))


def test_no_message_is_lost_while_others_are_deleted(lab: Lab) -> None:
    url, _ = lab.queue()
    fill(lab, url, 100)
    with ThreadPoolExecutor(2) as threads:
        sending = threads.submit(fill, lab, url, 100)
        taken = drain(lab, url)
        sending.result()
    taken += drain(lab, url)
    assert len(taken) == 200


def test_a_backlog_stays_cheap(lab: Lab) -> None:
    url, _ = lab.queue()
    before = cpu_seconds(lab.aws.pid)
    fill(lab, url, 500)
    assert len(drain(lab, url)) == 500
    assert cpu_seconds(lab.aws.pid) - before < 6.0  # 12 s with moto's own clock


def test_a_long_poll_wakes_for_a_message(lab: Lab) -> None:
    url, _ = lab.queue()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(lab.take, url, seconds=20)
        lab.aws.client("sqs").send_message(QueueUrl=url, MessageBody="now")
        assert [row["Body"] for row in waiting.result()] == ["now"]


def test_a_long_poll_without_a_message_ends_when_its_time_is_over(lab: Lab) -> None:
    url, _ = lab.queue()
    began = time.monotonic()
    assert lab.take(url, seconds=1) == []
    assert time.monotonic() - began >= 1
