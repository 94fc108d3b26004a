//! Gives the model a function of the program, with the program's state behind it.
//!
//! `cargo run -p rondo --example custom_tool -- openai-chat http://127.0.0.1:8080/v1 any`

mod common;

use common::{Failure, model_from_env};
use rondo::{Agent, FnTool, HttpModel, JsonSchema};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

#[derive(Deserialize, JsonSchema)]
struct Lookup {
    /// The article's name, in the singular.
    article: String,
}

#[derive(Clone, Serialize)]
struct Shelf {
    row: u32,
    left: u32,
}

type Stock = BTreeMap<String, Shelf>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let model = model_from_env(&mut std::env::args().skip(1))?;
    run(model, &mut std::io::stdout()).await
}

pub(crate) async fn run(model: HttpModel, out: &mut impl Write) -> Result<(), Failure> {
    let stock = Stock::from([("lamp".to_owned(), Shelf { row: 7, left: 3 })]);
    let agent = Agent::builder(model)
        .tool(stock_tool(Arc::new(stock)))
        .system("You answer questions about a warehouse. Look everything up.")
        .build()?;
    let outcome = agent.run("Where are the lamps, and how many?").await?;
    writeln!(out, "{} ({} calls)", outcome.text, outcome.tool_calls)?;
    Ok(())
}

fn stock_tool(stock: Arc<Stock>) -> FnTool {
    let look_up = move |args: Lookup, _cx| {
        let stock = Arc::clone(&stock);
        async move {
            let shelf = stock.get(&args.article).cloned();
            // The model reads the error and tries something else.
            shelf.ok_or_else(|| format!("there is no article `{}`", args.article))
        }
    };
    rondo::tool(
        "stock",
        "Tells where an article is and how many are left.",
        look_up,
    )
    .read_only()
}
