"""What the operators of one running query share: context, memory budget, threads, spill files."""
