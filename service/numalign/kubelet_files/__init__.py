"""The kubelet's state files: decoding, verifying and encoding them, as pure functions over text.

Nothing here opens a file. Who imports or exports a state file reads or writes the text and
says where it lies; this package says what it means, whether its checksum holds, and with
which words the kubelet would refuse it.
"""
