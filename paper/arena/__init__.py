"""Accuracy where others have published figures, next to methods that anyone can write in a line."""
