"""Memory and huge pages: which NUMA nodes a container's memory is booked on."""
