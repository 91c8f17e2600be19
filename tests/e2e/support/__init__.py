"""What the end-to-end tests are made of. Everything speaks to the real binary from outside, as its users do."""
