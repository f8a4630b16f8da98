"""Samplers: later arms get configs that are chosen by the losses of earlier ones.

`protocol.py` says what a sampler is, and each sampler has a file of its own and a line in
`SAMPLERS`, under its name in the command. `sampled_policy.py` puts one between a policy and its
arms. Drawing configs at random belongs to `lastarm.space`.
"""

from lastarm.later import later

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lastarm.samplers.forest import Forest
    from lastarm.samplers.gaussian_process import GaussianProcess
    from lastarm.samplers.protocol import Chosen, Known, Sampler, Seen
    from lastarm.samplers.sampled_policy import SampledPolicy

__all__ = [
    "SAMPLERS",
    "Chosen",
    "Forest",
    "GaussianProcess",
    "Known",
    "SampledPolicy",
    "Sampler",
    "Seen",
]

# The command lists them, and loads the one that is asked for.
SAMPLERS = {"gaussian-process": "GaussianProcess", "forest": "Forest"}

__getattr__ = later(
    __name__,
    {
        "forest": "Forest",
        "gaussian_process": "GaussianProcess",
        "protocol": "Chosen Known Sampler Seen",
        "sampled_policy": "SampledPolicy",
    },
)
