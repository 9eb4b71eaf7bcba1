"""Whether the API server would take a pod.

What is checked is what a mistake in a manifest usually breaks: names, containers, ports, probes,
environment, resources, volumes and their mounts, affinity, tolerations, topology spread, DNS
settings, policies and numbers. Left to whoever runs the pod are the details of security contexts,
and the inner fields of volumes other than hostPath, emptyDir and projected: nothing that numalign
decides depends on them. Resource claims are none of a static pod (`references`).
"""
