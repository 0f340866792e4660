"""An experiment as a plain shell script that needs only fio; each knob says its own lines."""
