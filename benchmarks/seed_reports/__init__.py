"""The five reports that iodelta is measured against: their numbers, or their workloads on this machine, as pictures."""
