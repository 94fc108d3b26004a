//! Text on its way to the screen: cleaned of what would steer a terminal, and broken into rows.

pub(crate) mod clean;
pub(crate) mod printed;
pub(crate) mod row;
pub(crate) mod wrap;

pub(crate) use row::Row;
pub(crate) use wrap::{Piece, Wrap, columns};
