"""Search spaces: what the config of an arm is drawn from.

`domains.py` has the values of one parameter, `spaces.py` their combinations, and `draw.py` the
functions that use them. The config of arm i is a function of the seed and i. Choosing configs by
the losses of earlier arms belongs to `lastarm.samplers`.
"""

from lastarm.space.domains import Choice as Choice
from lastarm.space.domains import Integer as Integer
from lastarm.space.domains import LogUniform as LogUniform
from lastarm.space.domains import Uniform as Uniform
from lastarm.space.draw import describe as describe
from lastarm.space.draw import domains as domains
from lastarm.space.draw import draw as draw
from lastarm.space.draw import recalled as recalled
from lastarm.space.draw import size as size
from lastarm.space.draw import spare as spare
from lastarm.space.spaces import Configs as Configs
from lastarm.space.spaces import Grid as Grid
from lastarm.space.spaces import Space as Space
