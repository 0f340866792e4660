"""Bundles: an experiment folder packed without the names of its machine, read as hostile, planned for this machine.

A bundle is data. Nothing in this room runs, sets or writes what a bundle says. The room checks the bundle and makes an
experiment of it, which the lab may run after the user has seen and accepted it. ``packing`` makes one, ``packed`` reads
one as a folder, ``planning`` puts its experiment on this machine.
"""
