"""Families of generated designs. A family is a function that fills a Module; it knows nothing of any policy."""
