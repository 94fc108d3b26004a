//! Built-in tools: files and search, confined to their directories.
