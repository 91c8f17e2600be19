// Keeps the library linkable when it has no other source.
