"""The values that flow: Query, BoundQuery, JoinGraph, Statistics, Budget, Plan. Frozen, validated, engine-free."""
