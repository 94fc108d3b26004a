//! The machine alone, driven by scripts.

mod budget;
mod calls;
mod failures;
mod properties;
mod replies;
mod sim;
