"""The stores: windows, inner states and their indexes, side by side in one arena."""
