"""What bench/models measures with: the engines, the machine's canary, paired rounds, fresh processes."""
