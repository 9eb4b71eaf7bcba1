"""Generated messages and stubs of pluginregistration v1."""
