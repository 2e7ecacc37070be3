"""Which nodes to buy: the cheapest set that holds the pods, against a proven lower bound."""
