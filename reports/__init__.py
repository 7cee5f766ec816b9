"""Published tables -> frozen page models -> a static site. Reads the tables alone, never a bundle."""
