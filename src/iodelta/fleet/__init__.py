"""One question on many hosts: an ordinary experiment folder for each, scheduled by dask.distributed."""
