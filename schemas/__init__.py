"""Arrow schemas of every table semrank reads and writes, and the checks that hold data to them."""
