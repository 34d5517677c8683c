"""Lettering: the two vendored typefaces, what they cover, how wide a text is and where its lines break."""
