"""Other tools of the field: OpenDP's measurements (``opendp``), dp_accounting's events and ledgers (``accounting``).

Neither library is needed to use rankdp: each is imported when a function here is called.
"""
