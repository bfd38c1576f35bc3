"""What readers get: pages, tables and pictures of released values."""
