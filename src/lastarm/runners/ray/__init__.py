"""The Ray runner: pulls on the actors of a Ray cluster.

Here is all that is about Ray: the runner and its actors, the cluster that it starts or watches,
and, in `compat`, the only uses of names that are not public in Ray.
"""

try:
    import ray  # noqa: F401
except ImportError as error:
    raise ImportError(
        "the Ray runner needs Ray, which is not installed: pip install 'lastarm[ray]'"
    ) from error

from lastarm.runners.ray.runner import Ray

__all__ = ["Ray"]
