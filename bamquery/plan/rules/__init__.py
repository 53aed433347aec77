"""Rewrite rules: one file, one function `Plan -> Plan` each; `bamquery.plan.optimizer` has their order."""
