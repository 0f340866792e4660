"""The read-policy laboratory: simulate an array, run a real mirror in user space, explain what a policy will do."""
