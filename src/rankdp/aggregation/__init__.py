"""What a crowd says together, from rankings that each say little: unbiased statistics of privatized rankings."""
