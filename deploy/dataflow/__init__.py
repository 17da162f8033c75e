"""The flex template for Dataflow."""
