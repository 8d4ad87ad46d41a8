"""Speed, memory and accuracy per compute: each module is one command that prints a table."""
