"""Error rates and costs of decision rules, iodelta's and others', on the same noise."""

import os

# Read when numpy is loaded: the matrices are small, and threads would cost more processor time than they save.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
