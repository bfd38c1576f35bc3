"""The verbs: secret data in, a Release out."""
