"""What the modules of ``tranship.mscclpp.language`` export. Here is all of it, once."""
