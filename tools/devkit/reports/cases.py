"""The list that each report of this package enters itself in."""

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function
