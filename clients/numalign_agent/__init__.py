"""numalign-agent: a node agent that lives by numalign's Admission service.

It learns which pods this node should run (`sources`), merges them into one stream of changes
(`merging`), has each new pod judged by Admission, and has those that were admitted run
(`runners`, `nri`). docs/agent.md says how it is put to use.
"""
