//! Keeps a conversation in a file: started again, it continues where it was, even within a turn.
//!
//! `cargo run -p rondo --features journal --example durable -- openai-chat http://127.0.0.1:8080/v1 any ./kept diary "My name is Ana."`

mod common;

use common::{Failure, model_from_env};
use rondo::journal::{Options, Store};
use rondo::{Agent, HttpModel};
use std::io::Write;
use std::path::Path;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let model = model_from_env(&mut args)?;
    let (Some(dir), Some(name), Some(message)) = (args.next(), args.next(), args.next()) else {
        return Err("give a directory, the conversation's name and what to say in it".into());
    };
    let asked = (name.as_str(), message.as_str());
    run(model, Path::new(&dir), asked, &mut std::io::stdout()).await
}

pub(crate) async fn run(
    model: HttpModel,
    dir: &Path,
    (name, message): (&str, &str),
    out: &mut impl Write,
) -> Result<(), Failure> {
    let store = Store::open(dir, Options::default())?;
    let agent = Agent::builder(model).system("You are brief.").build()?;
    let session = agent.open_session(&store, name).await?;
    if let Some(turn) = session.resume() {
        let outcome = turn.outcome().await?;
        writeln!(out, "(to what was asked before) {}", outcome.text)?;
    }
    let outcome = session.run(message).await?;
    writeln!(out, "{}", outcome.text)?;
    Ok(())
}
