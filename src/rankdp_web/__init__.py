"""Web pages: a survey whose noise is added in the respondent's browser. They need the extra ``rankdp[web]``."""
