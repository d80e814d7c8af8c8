"""Watersmeet on Spark beside its peers: Spark's own join, Flink SQL, and Spark reading the same files into nothing (the limit)."""
