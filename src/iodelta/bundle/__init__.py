"""Bundles: an experiment folder packed to travel, without the names of its machine; read as hostile; planned anew here.

A bundle is data. Nothing in this room runs, sets or writes what a bundle says; it is taken apart, checked, and turned
into an experiment that the lab may run once its user has seen and accepted it. ``packing`` makes one, ``packed`` reads
one as a folder, ``planning`` puts its experiment on this machine.
"""
