"""The containers of one pod: what is written of them, and what has to be done next."""
