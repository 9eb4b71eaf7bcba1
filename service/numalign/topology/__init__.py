"""The Topology Manager: merge, policies, scopes."""
