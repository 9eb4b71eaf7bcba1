"""Generated code of its messages, package `ttrpc`."""
