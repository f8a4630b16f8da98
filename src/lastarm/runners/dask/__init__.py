"""The Dask runner: pulls on the workers of a Dask cluster.

Here is all that is about Dask: the runner, what it does on the cluster's workers, which workers
there are, and, in `compat`, the only uses of names that are not public in Dask.
"""

try:
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError(
        "the Dask runner needs Dask, which is not installed: pip install 'lastarm[dask]'"
    ) from error

from lastarm.runners.dask.runner import Dask

__all__ = ["Dask"]
