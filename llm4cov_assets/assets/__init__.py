"""The pipeline as Dagster assets: thin wrappers that read rows, call pure functions and write rows."""

import warnings

import dagster as dg

# Backfill policies and partitioned checks are beta in Dagster 1.13 and used on purpose.
warnings.filterwarnings("ignore", category=dg.BetaWarning)
