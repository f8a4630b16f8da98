"""Search spaces: what the config of an arm is drawn from.

`domains.py` has the values of one parameter, `spaces.py` their combinations, and how configs are
drawn from them: that of arm i is a function of the seed and i. `drawn.py` keeps those of a million
arms. `beliefs.py` has where a user expects good values, and `encoding.py` what a model learns from:
configs as rows of numbers, and their neighbours. Choosing configs by the losses of earlier arms belongs to `lastarm.samplers`.
"""

from lastarm.space.domains import Choice as Choice
from lastarm.space.domains import Integer as Integer
from lastarm.space.domains import LogUniform as LogUniform
from lastarm.space.domains import Normal as Normal
from lastarm.space.domains import Uniform as Uniform
from lastarm.space.encoding import Encoded as Encoded
from lastarm.space.encoding import encode as encode
from lastarm.space.encoding import neighbours as neighbours
from lastarm.space.spaces import Configs as Configs
from lastarm.space.spaces import Grid as Grid
from lastarm.space.spaces import Space as Space
from lastarm.space.spaces import describe as describe
from lastarm.space.spaces import domains as domains
from lastarm.space.spaces import draw as draw
from lastarm.space.spaces import drawn as drawn
from lastarm.space.spaces import examples as examples
from lastarm.space.spaces import recalled as recalled
from lastarm.space.spaces import size as size
from lastarm.space.spaces import spare as spare
