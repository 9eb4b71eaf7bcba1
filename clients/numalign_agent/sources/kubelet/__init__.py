"""The pods of a kubelet: for an agent that runs beside one and decides nothing for it.

A pod keeps the annotation that says from which of the kubelet's own sources it came.
"""

NAME = "kubelet"
