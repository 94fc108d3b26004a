//! Pure codecs between provider wire formats and Rondo's types.
