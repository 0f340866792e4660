"""Commands, one module each: parse, call, render, exit code."""
