"""Which nodes to buy: the cheapest set that holds the pods, against a proven lower bound.

What modules here hand each other are named tuples: to make a frozen dataclass takes five times as
long when a module is loaded, which is most of a cold start. What goes in and out is dataclasses.
"""
