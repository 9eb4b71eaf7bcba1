"""`numalign run`: one command as a pod of its own.

Three processes. The **front** is what the user started: it passes signals on and ends as the
command ends. The **command** is its child. The **keeper** is its other child and the only one
that speaks to Admission: it has the pod admitted, moves it when CPUs change hands, and gives
everything back when the front is gone, however that came about.
"""
