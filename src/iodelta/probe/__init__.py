"""Environment and counters: what the machine is, and what it did during a trial."""
