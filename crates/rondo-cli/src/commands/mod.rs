//! One file for each command, and what they share.

mod ask;
mod completion;
mod doctor;
mod fork;
mod models;
mod profiles;
mod replay;
mod run;
mod session;
mod test;
mod wire;

pub use run::run;
