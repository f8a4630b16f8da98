"""Checks of what a caller gives.

`checks.py` has those of values: whole numbers, exact fractions, seconds, and names with "did you
mean". `other_tools.py` knows what other tools call the arguments of lastarm. What an argument
means is checked where it is used.
"""

from lastarm.arguments.checks import MOST as MOST
from lastarm.arguments.checks import Number as Number
from lastarm.arguments.checks import as_float as as_float
from lastarm.arguments.checks import did_you_mean as did_you_mean
from lastarm.arguments.checks import one_of as one_of
from lastarm.arguments.checks import overflows as overflows
from lastarm.arguments.checks import plain_fraction as plain_fraction
from lastarm.arguments.checks import rational as rational
from lastarm.arguments.checks import real as real
from lastarm.arguments.checks import require_budget as require_budget
from lastarm.arguments.checks import time_limit as time_limit
from lastarm.arguments.checks import whole_number as whole_number
