"""Noisy bisection of anything ordered, and attribution of a change among several patches."""
