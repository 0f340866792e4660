"""Decision rules on equal terms: false alarms, power and machine time of iodelta and of its peers."""
