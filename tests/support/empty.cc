// Lets the library link when it has no other source.
