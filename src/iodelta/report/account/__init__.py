"""One experiment of ours: what became of it, and everything its trials say."""
