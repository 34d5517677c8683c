"""The set pieces, one module for each subject. Each class is a `shot.Piece`."""
