"""The screens' parts: scenario to widgets and back, words, charts, and runs in the background."""
