"""What starts and ends containers, behind one small interface."""
