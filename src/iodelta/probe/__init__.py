"""Environment and counters: the state of the machine, and its activity during a trial."""
