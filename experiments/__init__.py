"""One folder per paper: a config with the seeds, resumable runs, raw CSV, figures, and the paper's claims checked one by one."""
