"""Native code: functions are marked here, compiled once on a machine, and loaded without the compiler."""
