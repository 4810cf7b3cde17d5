"""Configs: declared once in `tables`; `settings` are what the server starts with, `dynamic` is what it runs by.

- `declaration`, `catalogue`, `tables`: what configs there are, their types, defaults and legal values.
- `properties`, `settings`, `listeners`, `checks`: the settings from file, environment and flags, and what must hold
  between them.
- `effective`, `validation`, `dynamic`, `altering`: which value counts and why, what may be set, and setting it.
"""
