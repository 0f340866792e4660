"""A knob, a rule, a reader and a machine for iodelta."""
