//! Measures replies with guesses and without, and prints one JSON object a question:
//! `quote FILE [ROUNDS] [INSTRUCTIONS]`.
//!
//! One question is answered by quoting a tool's result, the others in the model's own words. Both kinds of
//! replies are the same with guesses and without, token for token; what differs is their time.
#![expect(clippy::print_stdout, reason = "its output is what it is for")]

use futures_util::TryStreamExt as _;
use rondo_core::Model as _;
use rondo_local::{CpuEngine, Engine, Instructions, LocalError, LocalModel, Vocabulary};
use rondo_types::{
    CallId, Message, ModelEvent, ModelRequest, Part, Sampling, ToolCall, ToolChoice, ToolContent,
    ToolResult,
};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

const CONTEXT: usize = 4_096;
const REPLY_TOKENS_MAX: u32 = 160;
/// Rounds, unless the caller says otherwise.
const ROUNDS: usize = 3;

const LISTING: &str = "Cargo.toml\nREADME.md\ndocs/index.md\ndocs/setup.md\nsrc/lib.rs\nsrc/main.rs\n\
    src/parser/mod.rs\nsrc/parser/tokens.rs\nsrc/writer.rs\ntests/it/main.rs\ntests/it/writer.rs\n";
const SOURCE: &str = "fn area(width: u32, height: u32) -> u32 {\n    width * height\n}\n\nfn main() {\n    \
    println!(\"{}\", area(3, 4));\n    println!(\"{}\", area(5, 6));\n}\n";

/// A question, the command that the model ran, its output, and whether the answer quotes it.
const QUESTIONS: [(&str, &str, &str, bool); 4] = [
    (
        "Which files are tracked? List all of them.",
        "git ls-files",
        LISTING,
        true,
    ),
    (
        "Which lines of src/main.rs print something? Quote them.",
        "cat src/main.rs",
        SOURCE,
        false,
    ),
    (
        "What would you call a better name for `area`, and why?",
        "cat src/main.rs",
        SOURCE,
        false,
    ),
    (
        "Explain in a few sentences what src/main.rs does.",
        "cat src/main.rs",
        SOURCE,
        false,
    ),
];

/// An engine that guesses nothing.
struct Plain(CpuEngine);

impl Engine for Plain {
    fn vocabulary(&self) -> &Arc<Vocabulary> {
        self.0.vocabulary()
    }

    fn context_tokens(&self) -> usize {
        self.0.context_tokens()
    }

    fn sequence(&self) -> &[u32] {
        self.0.sequence()
    }

    fn truncate(&mut self, length: usize) {
        self.0.truncate(length);
    }

    fn extend(&mut self, tokens: &[u32]) -> Result<Vec<f32>, LocalError> {
        self.0.extend(tokens)
    }

    fn advance(&mut self, tokens: &[u32]) -> Result<(), LocalError> {
        self.0.advance(tokens)
    }

    fn fork(&self) -> Result<Box<dyn Engine>, LocalError> {
        self.0.fork()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = PathBuf::from(args.next().ok_or("a GGUF file is wanted")?);
    let rounds = args.next().map_or(Ok(ROUNDS), |text| text.parse())?;
    let fastest = Instructions::available().next().ok_or("no instructions")?;
    let instructions = args.next().map_or(Ok(fastest), |name| name.parse())?;
    let load = move |path: PathBuf| CpuEngine::load_with(instructions, &path, CONTEXT);
    let (one, other) = (path.clone(), path);
    let guessing = LocalModel::with_engine("guessing", CONTEXT, move || {
        Ok(Box::new(load(one.clone())?) as Box<dyn Engine>)
    })?;
    let plain = LocalModel::with_engine("plain", CONTEXT, move || {
        Ok(Box::new(Plain(load(other.clone())?)) as Box<dyn Engine>)
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    for (question, command, output, quotes) in QUESTIONS {
        // The prompt is computed in the first round, so the best of the others is the reply's time alone.
        let mut measured = [&guessing, &plain].map(|model| (model, Duration::MAX, String::new()));
        for _ in 0..=rounds {
            for (model, time, reply) in &mut measured {
                let request = Arc::new(request(question, command, output));
                let started = Instant::now();
                let events: Vec<_> = runtime.block_on(model.stream(request).try_collect())?;
                *time = started.elapsed().min(*time);
                *reply = text(&events);
            }
        }
        let [(_, with, guessed), (_, without, reply)] = measured;
        let [with, without] = [with, without].map(|it| it.as_secs_f64());
        println!(
            "{}",
            json!({
                "question": question,
                "quotes": quotes,
                "instructions": instructions.to_string(),
                "is_same": guessed == reply,
                "bytes": reply.len(),
                "ms_with": with * 1e3,
                "ms_without": without * 1e3,
                "times_faster": without / with,
            })
        );
    }
    Ok(())
}

fn request(question: &str, command: &str, output: &str) -> ModelRequest {
    let mut called = Message::assistant("");
    called.parts = vec![Part::ToolCall(ToolCall {
        id: CallId::new("1"),
        wire_id: None,
        name: "exec".into(),
        arguments: json!({ "command": command }).to_string(),
        complete: true,
        opaque: None,
    })];
    let result = ToolResult {
        call_id: CallId::new("1"),
        wire_id: None,
        name: "exec".into(),
        error: None,
        content: ToolContent::Text(output.into()),
        blocks: Vec::new(),
        synthetic: false,
    };
    let messages = [
        Message::user(question),
        called,
        Message::tool_results(vec![result]),
    ];
    ModelRequest {
        model: "m".into(),
        system: Vec::new().into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: Arc::default(),
        tool_choice: ToolChoice::Auto,
        sampling: Sampling {
            max_output_tokens: Some(REPLY_TOKENS_MAX),
            temperature: Some(0.0),
            ..Sampling::default()
        },
        response_schema: None,
    }
}

fn text(events: &[ModelEvent]) -> String {
    let texts = events.iter().filter_map(|event| match event {
        ModelEvent::TextDelta { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}
