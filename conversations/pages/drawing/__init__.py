"""Drawing charts and tables: positions in percent, and formatted numbers. The ledger keeps neither."""
