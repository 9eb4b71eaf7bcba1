"""The NRI plugin: what Admission granted becomes what the container runtime does.

`wire` speaks to the runtime, `plan` decides what it is to be told, and the modules here keep
what is known of its pods and carry things out. docs/how-to/enforce.md says how it is put to use.
"""
