"""The local runner: runs a Beam pipeline on this machine, elements by reference."""
