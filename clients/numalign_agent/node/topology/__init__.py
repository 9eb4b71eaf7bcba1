"""The node's NodeResourceTopology: what a topology-aware scheduler knows of its NUMA nodes."""
