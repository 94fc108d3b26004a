//! The binary as its users meet it: arguments in; standard output, standard error and exit code out.

mod ask;
mod attachments;
mod configuration;
mod doctor;
mod faults;
mod harness;
mod limits;
mod profiles;
mod signals;
mod wire;
