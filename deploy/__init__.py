"""How semrank runs off one machine, and on its own."""
