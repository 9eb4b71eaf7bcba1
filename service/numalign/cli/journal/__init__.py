"""Past decisions, as the commands ask for them and speak of them."""
