"""What the warehouse refuses, in one line."""


class WarehouseError(Exception):
    """Rows, parts or a database that cannot be taken. The message names what, where and how to mend it."""
