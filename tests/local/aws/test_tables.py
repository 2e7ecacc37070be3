from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.local.aws.lab import Lab


def test_a_transaction_that_fails_takes_back_nothing_of_others(lab: Lab) -> None:
    client, name = lab.aws.client("dynamodb"), lab.name("table")
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )

    def put(number: int) -> None:
        client.put_item(TableName=name, Item={"pk": {"S": str(number)}})

    def fail(number: int) -> None:
        condition = {
            "TableName": name,
            "Key": {"pk": {"S": f"absent-{number}"}},
            "ConditionExpression": "attribute_exists(pk)",
        }
        with pytest.raises(client.exceptions.TransactionCanceledException):
            client.transact_write_items(TransactItems=[{"ConditionCheck": condition}])

    for number in range(150):
        put(number)
    with ThreadPoolExecutor(3) as writers, ThreadPoolExecutor(3) as others:
        writing = writers.map(put, range(150, 300))
        failing = others.map(fail, range(60))
        assert len([*writing, *failing]) == 210
    found = client.get_paginator("scan").paginate(TableName=name)
    assert sum(page["Count"] for page in found) == 300
