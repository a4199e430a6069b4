"""What a lane is given, what it does, what it keeps."""
