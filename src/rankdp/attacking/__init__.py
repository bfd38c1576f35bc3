"""Attack: what somebody who means ill learns from a release. Trust is earned by attacking oneself."""
