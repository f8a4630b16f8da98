"""Pulls on the workers of a Dask cluster."""

try:
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError(
        "Dask is needed to run on its workers. Install it with pip install 'lastarm[dask]'."
    ) from error

from lastarm.runners.dask.runner import Dask

__all__ = ["Dask"]
