//! Gets a value of a type instead of text.
//!
//! `cargo run -p rondo --example structured_output -- openai-chat http://127.0.0.1:8080/v1 any`

mod common;

use common::{Failure, model_from_env};
use rondo::{Agent, HttpModel, JsonSchema, TypedError};
use serde::Deserialize;
use std::io::Write;

/// A date and a place, taken from a message.
#[derive(Deserialize, JsonSchema)]
struct Appointment {
    title: String,
    /// As YYYY-MM-DD.
    date: String,
    /// Absent if the message does not say.
    place: Option<String>,
    attendees: Vec<String>,
}

const MESSAGE: &str = "Lunch with Ana and Rui on the third of May 2027, at the harbour.";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let model = model_from_env(&mut std::env::args().skip(1))?;
    run(model, &mut std::io::stdout()).await
}

pub(crate) async fn run(model: HttpModel, out: &mut impl Write) -> Result<(), Failure> {
    let agent = Agent::builder(model)
        .system("Take the appointment out of the user's message.")
        .build()?;
    match agent.run_typed::<Appointment>(MESSAGE).await {
        Ok(typed) => describe(&typed.value, out)?,
        Err(TypedError::NoAnswer { outcome }) => {
            writeln!(out, "no appointment after {} steps", outcome.steps)?;
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

fn describe(it: &Appointment, out: &mut impl Write) -> std::io::Result<()> {
    let place = it.place.as_deref().unwrap_or("somewhere");
    let who = it.attendees.join(", ");
    writeln!(out, "{}: {} at {place}, with {who}", it.date, it.title)
}
