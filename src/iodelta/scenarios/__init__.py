"""Experiments that make what they measure: each a question somebody once posted, ready to be run anywhere."""
