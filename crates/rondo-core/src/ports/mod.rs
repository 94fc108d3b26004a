//! What a turn needs from outside. All traits are object-safe; all data are plain Rust types.

mod cell;
mod gate;
mod journal;
mod model;
mod process;
mod tool;

pub use cell::{CellEnding, CodeChange};
pub use gate::{Approval, ApprovalRequest, Approver, Gate, GateRequest, Verdict};
pub use journal::{
    AppendError, Fence, Journal, MemoryJournal, NoJournal, Purpose, Record, RecordBody,
    RequestParts, Seq,
};
pub use model::{Model, ModelStream};
pub use process::{ProcessEnd, StoppedBy};
pub use tool::{DoubtfulCall, OutputSink, Reconciled, Tool, ToolInvocation};
