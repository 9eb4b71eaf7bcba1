"""The interface between a kubelet and a DRA driver, as drivers speak it."""
