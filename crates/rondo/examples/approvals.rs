//! Asks a person before a dangerous tool runs; another task puts the questions.
//!
//! `cargo run -p rondo --example approvals -- openai-chat http://127.0.0.1:8080/v1 any`

mod common;

use common::{Failure, model_from_env};
use rondo::{Agent, HttpModel, JsonSchema, PendingQuestion, Tool, approvals};
use serde::Deserialize;
use std::io::{BufRead, Write};
use std::sync::Arc;

#[derive(Deserialize, JsonSchema)]
struct Mail {
    to: String,
    text: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let model = model_from_env(&mut std::env::args().skip(1))?;
    run(model, &mut std::io::stdin().lock(), &mut std::io::stdout()).await
}

pub(crate) async fn run(
    model: HttpModel,
    person: &mut impl BufRead,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let send = |mail: Mail, _cx| async move {
        Ok::<_, Failure>(format!("sent {} bytes to {}", mail.text.len(), mail.to))
    };
    let send: Arc<dyn Tool> = Arc::new(rondo::tool("send_mail", "Sends a mail.", send));
    let (approver, mut questions) = approvals();
    let agent = Agent::builder(model)
        .judged_tools([send])
        .approver(approver)
        .build()?;

    let turn = agent.start("Tell ana@example.org that lunch is at one.");
    // The questions end with their possible senders: the agent, and the turn itself.
    drop(agent);
    let answers = async {
        while let Some(question) = questions.next().await {
            answer(question, person, out)?;
        }
        Ok::<_, Failure>(())
    };
    let (outcome, answered) = tokio::join!(turn.outcome(), answers);
    answered?;
    writeln!(out, "{}", outcome?.text)?;
    Ok(())
}

fn answer(
    question: PendingQuestion,
    person: &mut impl BufRead,
    out: &mut impl Write,
) -> Result<(), Failure> {
    write!(out, "{}\nRun it? y/n: ", question.question().prompt)?;
    out.flush()?;
    let mut line = String::new();
    person.read_line(&mut line)?;
    if line.trim() == "y" {
        question.approve();
    } else {
        question.deny("the user said no");
    }
    Ok(())
}
