"""Logical plans: what a query means, not how it is run.

`nodes`, `expressions` and `functions` are the language between the binder, which makes plans, and the
engine, which runs them. `optimizer` puts a plan through `rules`, one file each; `rewriting` is what rules are
made of.
`constants` and `evaluation` compute with literals as a device would.
"""
