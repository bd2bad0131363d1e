"""How charts and tables are drawn: places in percent, and numbers as people read them. The ledger keeps neither."""
