"""How a trial is made and read back: fio, its target files, and the background load during it."""
