"""How to do it: the plan before it starts, the lines and the script that do it again."""
