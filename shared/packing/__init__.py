"""Which nodes to buy: the cheapest set that holds the pods, against a proven lower bound.

Modules here pass named tuples to each other: creating a frozen dataclass takes five times as long
when a module is loaded, and loading is most of a cold start. Input and output are dataclasses.
"""
