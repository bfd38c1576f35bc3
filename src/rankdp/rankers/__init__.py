"""Rankings from comparisons and from rankings, without privacy: plain mathematics on numbers that may be seen."""
