"""Web pages: a survey whose noise is added in the respondent's browser. The extra ``rankdp[web]`` installs what it needs."""
