"""A node that nobody else reports: its Node object, lease and status (`--own-node`).

The status says what the node has, devices included, and whether the agent is ready. Pressure
conditions, images, volumes and network are not reported: the agent manages none of them.
"""
