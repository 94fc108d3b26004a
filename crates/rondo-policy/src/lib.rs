//! May it run? Command analysis, the gate that judges calls by it, and what commands get to see.
//!
//! Nothing here starts anything: a judgement reads directories, links and a repository's settings, and
//! says whether a call runs, is asked about or is denied. Code that runs commands asks here first.
#![warn(missing_docs)]

pub mod analysis;
mod environment;
mod gate;
mod lookup;
mod unix;
mod workdir;

pub use analysis::{AllowedDirs, Judgement, is_complete};
pub use environment::CommandEnvironment;
pub use gate::{GateOptions, PatternError, StandardGate};
pub use workdir::{Variables, Workdir};
