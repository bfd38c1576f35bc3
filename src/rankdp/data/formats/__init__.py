"""File formats: each reads batches of rankings and writes them; `rankdp.data.files` chooses by the ending."""
