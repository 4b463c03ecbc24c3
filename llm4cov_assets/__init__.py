"""The pipeline: corpus, ingest, policies, learning, and the Dagster assets that carry data between them."""
