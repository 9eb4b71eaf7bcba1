"""The demonstration: five services on a made-up machine, admitting sample pods."""
