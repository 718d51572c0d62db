"""All that the modules of ``tranship.mscclpp.language`` export."""
