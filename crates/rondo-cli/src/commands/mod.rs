//! One file for each command, and what they share.

mod ask;
mod completion;
mod doctor;
mod fork;
mod models;
mod profiles;
mod run;
mod session;
mod wire;

pub(crate) use run::fresh_id;
pub use run::run;
