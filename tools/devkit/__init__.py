"""What the scripts in tools/, bench/ and test/e2e share. Nothing here is part of the compiler or the runtime."""
