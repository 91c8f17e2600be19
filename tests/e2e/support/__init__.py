"""Building blocks of the end-to-end tests. Everything talks to the real binary from outside, as its users do."""
