"""One module per group of commands; `cli.py` mounts them."""
