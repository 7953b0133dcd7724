"""Pure functions of plain arrays that Numba compiles; nothing here imports the rest of the project."""
