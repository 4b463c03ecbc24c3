"""Designs, builds, simulation and coverage. Knows nothing of Dagster, of models or of the warehouse."""
