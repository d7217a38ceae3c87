"""Headroom: what-if experiments for serving a model to many people."""
