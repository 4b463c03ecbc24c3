"""Errors that are the user's to mend."""


class UserError(Exception):
    """Wrong usage or unreadable input. The message is one line that names what, where and how to mend it."""
