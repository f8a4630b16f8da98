"""Parts that several policies share. A part that only one policy needs stands in its file."""
