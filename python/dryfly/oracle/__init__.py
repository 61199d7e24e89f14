"""Closed forms, as oracle/ has them in C++: they share no code with what they are held against, and import nothing."""
