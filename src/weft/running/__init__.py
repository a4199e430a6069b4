"""Programs that run: what they do, kept for whoever asks. Logs, metrics, and a registry of runs on this machine."""
