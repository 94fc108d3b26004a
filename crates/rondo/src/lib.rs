//! The library front door of Rondo.
