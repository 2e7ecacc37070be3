"""Which nodes to buy: the cheapest set that holds the pods, against a proven lower bound.

Modules here pass named tuples to each other. Input and output are values of the model.
"""
