"""What a ledger says to people: tables, plots and files. Nothing here spends."""
