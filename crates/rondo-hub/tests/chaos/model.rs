//! A model that does what it is told: `task N calls K` takes K calls, `task N writes` one that is asked about, `task N later`
//! sets up a scheduled job, and `task N slowly` answers in pieces.

use jiff::{SignedDuration, Timestamp};
use rondo_testkit::{
    CallScript, Dice, Recorded, ReplyScript, Response, Script, Step, faults, openai,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Added to the number of a task for the work that it sets up.
const TIMED: usize = 1_000;
/// Time after which a scheduled job is due.
pub(crate) const DUE: Duration = Duration::from_secs(2);
/// Between the pieces of a slow answer: so long that a draft is shown.
const PIECE: Duration = Duration::from_millis(600);
/// One of so many requests fails, if they do.
const FAULT_ONE_IN: u64 = 40;

/// Instruction to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    Plain,
    Calls(usize),
    Writes,
    Later,
    Slowly,
}

impl Task {
    pub(crate) fn said(self, number: usize) -> String {
        match self {
            Self::Plain => format!("task {number} plain"),
            Self::Calls(count) => format!("task {number} calls {count}"),
            Self::Writes => format!("task {number} writes"),
            Self::Later => format!("task {number} later"),
            Self::Slowly => format!("task {number} slowly"),
        }
    }
}

/// The answer to a task.
pub(crate) fn answer(number: usize) -> String {
    format!("Answer {number}.")
}

/// The number of the work that a task sets up.
pub(crate) fn timed(number: usize) -> usize {
    TIMED + number
}

/// Faults of a model, now and then.
#[derive(Clone)]
pub(crate) struct Faults {
    state: Arc<Mutex<(Dice, bool)>>,
    /// Also cuts replies off after a part may have been shown, which is reported and not tried again.
    cuts: bool,
}

impl Faults {
    pub(crate) fn new(seed: u64, cuts: bool) -> Self {
        Self {
            state: Arc::new(Mutex::new((Dice::new(seed), true))),
            cuts,
        }
    }

    pub(crate) fn are_over(&self) {
        self.state.lock().unwrap().1 = false;
    }

    fn next(&self) -> Option<Response> {
        let mut state = self.state.lock().unwrap();
        let (dice, fails) = &mut *state;
        match (*fails, dice.roll(FAULT_ONE_IN)) {
            (true, 0) => Some(faults::rate_limited(Some(0))),
            (true, 1) => Some(faults::zero_byte_stall()),
            (true, 2) => Some(Response::sse(Vec::<String>::new()).before(Step::Reset)),
            (true, 3) if self.cuts => Some(faults::cut_after(
                openai::frames(&ReplyScript::text(["Answ"]))
                    .drain(..2)
                    .collect(),
            )),
            _ => None,
        }
    }
}

/// One that fails now and then.
pub(crate) fn failing(faults: &Faults) -> Script {
    let faults = faults.clone();
    Script::answering(move |request| faults.next().unwrap_or_else(|| reply(request)))
}

/// Answers a request.
pub(crate) fn reply(request: &Recorded) -> Response {
    reply_by("list_files", request)
}

/// Answers a request, and calls this tool if it is told to take calls.
pub(crate) fn reply_by(tool: &str, request: &Recorded) -> Response {
    let body = request.json();
    let text = asked(&body);
    let words: Vec<&str> = text.lines().last().unwrap_or_default().split(' ').collect();
    let number: usize = words.get(1).and_then(|it| it.parse().ok()).unwrap_or(0);
    let made = results(&body).count();
    let call = |name: &str, arguments: &Value| {
        let call = CallScript::new(&format!("c{number}-{made}"), name, arguments);
        openai::streamed(&ReplyScript::calls([call]).usage(10, 10))
    };
    match words.get(2).copied() {
        Some("calls") if made < words[3].parse().unwrap() => call(tool, &json!({"path": "."})),
        Some("writes") if made == 0 => {
            let arguments = json!({"path": format!("note{number}"), "content": number});
            call("write_file", &arguments)
        }
        Some("later") if made == 0 => call("cron", &job(number)),
        Some("slowly") => slowly(number),
        _ => openai::streamed(&ReplyScript::text([answer(number)]).usage(10, 10)),
    }
}

fn job(number: usize) -> Value {
    let at = Timestamp::now() + SignedDuration::try_from(DUE).unwrap();
    json!({"action": "add", "at": at.to_string(), "prompt": Task::Plain.said(timed(number))})
}

fn slowly(number: usize) -> Response {
    let text = answer(number);
    let (begin, end) = text.split_at(3);
    let frames = openai::frames(&ReplyScript::text([begin, end]).usage(10, 10));
    let mut response = Response::sse(Vec::<String>::new());
    for frame in frames {
        let is_piece = frame.windows(9).any(|it| it == b"\"content\"");
        response = response.send(frame);
        if is_piece {
            response = response.step(Step::Delay(PIECE));
        }
    }
    response
}

/// Returns the number of the task whose job a request reports as set up. A call that is repeated after the time that it
/// names sets up none, and says so.
pub(crate) fn promised(body: &Value) -> Option<usize> {
    let is_set_up = results(body).any(|it| text_of(it).contains("runs once"));
    let text = asked(body);
    let mut words = text.lines().last()?.split(' ');
    let number = words.nth(1)?.parse().ok()?;
    (is_set_up && words.next() == Some("later")).then_some(number)
}

/// Returns how often a task's request was made that was made most often.
pub(crate) fn most_tries(requests: &[Recorded], number: usize) -> usize {
    let task = format!("task {number} ");
    let mut by_length = BTreeMap::new();
    for request in requests {
        let body = request.json();
        if asked(&body).contains(&task) {
            let messages = body["messages"].as_array().unwrap().len();
            *by_length.entry(messages).or_insert(0) += 1;
        }
    }
    by_length.into_values().max().unwrap_or(0)
}

/// The results of calls since a person last said something.
fn results(body: &Value) -> impl Iterator<Item = &Value> {
    let messages = body["messages"].as_array().unwrap();
    let said = messages.iter().rposition(|it| it["role"] == "user");
    let since = &messages[said.unwrap()..];
    since.iter().filter(|it| it["role"] == "tool")
}

/// The last thing that a person said in a request.
pub(crate) fn asked(body: &Value) -> String {
    let messages = body["messages"].as_array().unwrap();
    let said = messages.iter().rev().find(|it| it["role"] == "user");
    let said = text_of(said.unwrap());
    // Unanswered messages are before it, each a paragraph.
    let last = said.rsplit("\n\n").find(|it| it.contains("task"));
    last.map_or(said.clone(), str::to_owned)
}

fn text_of(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|it| it["text"].as_str()).collect(),
        _ => String::new(),
    }
}
