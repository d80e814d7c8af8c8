"""bounds: what nobody who does not know the future can beat."""
