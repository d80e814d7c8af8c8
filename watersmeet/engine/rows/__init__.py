"""The rows: whatever the user gave, ordered, released, selected and encoded; and results, gathered from what was kept."""
