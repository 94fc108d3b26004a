//! What happens in a session, as entries of the conversation and as the state of the turn that runs.

use crate::app::activity::Activity;
use crate::text::clean;
use crate::transcript::{Answer, Card, CardEnd, Child, Entry, Quote, Tone, Transcript};
use rondo_designs::react::{AgentEvent, EventReader};
use rondo_runtime::service::{Cell, CellEnd, CellEvent, UpdateBody};
use rondo_runtime::target::ModelTarget;
use rondo_runtime::view::{Failure, Totals, TurnView, stopped_by};
use rondo_runtime::words;
use rondo_types::units::{counted, dollars, took};
use rondo_types::{
    CallId, EventBody, InitEvent, Question, ResultEvent, StopReason, TimeMs, TodoItem, TurnEvent,
};
use serde_json::Value;
use std::collections::HashMap;

/// The profile whose turns are told by the events of its design.
const REACT: &str = "react";
/// Said of a question that is put again since its answer was to something else.
const ASKED_AGAIN: &str =
    "it is asked again: its directory, variables or files changed before the answer";
/// Cards of calls whose end is not known that are kept track of.
const OPEN_CALLS_MAX: usize = 1_024;

/// What is told to the conversation: events of the design's agent, or plain words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoryEvent {
    /// An event of an agent.
    Agent(AgentEvent),
    /// Words of the program.
    Words(String),
}

impl From<AgentEvent> for StoryEvent {
    fn from(event: AgentEvent) -> Self {
        Self::Agent(event)
    }
}

impl From<String> for StoryEvent {
    fn from(words: String) -> Self {
        Self::Words(words)
    }
}

/// The conversation and the turn.
#[derive(Debug, Default)]
pub(crate) struct Story {
    pub(crate) transcript: Transcript,
    pub(crate) activity: Activity,
    /// Questions that were answered last.
    answered: Vec<Question>,
    pub(crate) todo: Vec<TodoItem>,
    /// What the turns did and used.
    pub(crate) totals: Totals,
    /// `provider/model` of the latest turn.
    pub(crate) model: Option<String>,
    pub(crate) profile: Option<String>,
    /// Whether a turn runs or is parked.
    pub(crate) is_in_turn: bool,
    /// How the last turn ended, once.
    pub(crate) ended: Option<StopReason>,
    /// Whether older messages were summed up in the latest turn, and whether that was all of it.
    has_summary: bool,
    only_summary: bool,
    answer: Option<usize>,
    thought: Option<usize>,
    calls: HashMap<CallId, usize>,
    cell: Option<usize>,
    reader: EventReader,
    /// The model of the turn, for hints about its key and address.
    pub(crate) target: Option<ModelTarget>,
}

impl Story {
    /// Returns whether turns are told by the events of the design.
    pub(crate) fn is_react(&self) -> bool {
        self.profile.as_deref() == Some(REACT)
    }

    /// Returns whether a person's own cell runs.
    pub(crate) fn runs_cell(&self) -> bool {
        self.cell.is_some()
    }

    /// Says something.
    pub(crate) fn note(&mut self, tone: Tone, text: &str) {
        self.transcript.push(Entry::Note(tone, clean::text(text)));
    }

    /// The latest turn has no end, and nobody works on it.
    pub(crate) fn cut_off(&mut self) {
        self.is_in_turn = false;
        self.activity = Activity::Idle;
        self.close_texts();
        let calls: Vec<CallId> = self.calls.keys().cloned().collect();
        for call in calls {
            self.card(&call, |card| card.is_running = false);
        }
        self.note(
            Tone::Warn,
            "this turn was cut off; `/resume` carries it on, and so does the next question",
        );
    }

    /// Takes an update of the session.
    pub(crate) fn update(&mut self, body: UpdateBody) {
        match body {
            UpdateBody::Asked { message, .. } => {
                let (words, quotes) = Quote::split(&message);
                self.transcript.push(Entry::Asked(clean::text(&words)));
                self.quote(&quotes);
                self.begin();
            }
            UpdateBody::Turn { event } => self.event(*event),
            UpdateBody::Session { .. } => {}
            UpdateBody::Cell { event } => self.cell_event(event),
            UpdateBody::Failed { message, hint } => {
                self.is_in_turn = false;
                self.activity = Activity::Idle;
                self.note(Tone::Bad, &message);
                if let Some(hint) = hint {
                    self.note(Tone::Plain, &hint);
                }
            }
            UpdateBody::Missed { bytes } => {
                let text = format!("{bytes} bytes of live output were not shown");
                self.note(Tone::Plain, &text);
            }
            UpdateBody::Reset => {
                self.close_texts();
                self.note(
                    Tone::Warn,
                    "the process running this session exited; output after its last saved step was discarded",
                );
            }
        }
    }

    /// Puts what happened earlier before it.
    pub(crate) fn put_before(&mut self, earlier: Self) {
        self.transcript.put_before(earlier.transcript);
        if self.todo.is_empty() {
            self.todo = earlier.todo;
        }
        self.totals.precede(&earlier.totals);
    }

    /// Shows what went along with a person's words.
    fn quote(&mut self, quotes: &[Quote]) {
        for quote in quotes {
            let card = Box::new(Card::quoted(quote));
            self.transcript.push(Entry::Card(card));
        }
    }

    fn begin(&mut self) {
        self.close_texts();
        self.is_in_turn = true;
        self.ended = None;
    }

    fn close_texts(&mut self) {
        (self.answer, self.thought) = (None, None);
    }

    /// Returns the questions that are open.
    pub(crate) fn questions(&self) -> &[Question] {
        self.totals.fold().questions()
    }

    fn event(&mut self, event: TurnEvent) {
        let at = event.at;
        let had_questions = !self.questions().is_empty();
        if matches!(event.body, EventBody::Resumed { .. }) {
            self.answered = self.questions().to_vec();
        }
        if let Some(note) = self.totals.event(&event) {
            let tone = if note.is_warning {
                Tone::Warn
            } else {
                Tone::Plain
            };
            self.note(tone, &note.text);
        }
        if self.is_react() {
            let told = self.reader.read(event.body.clone());
            for event in told {
                self.told(event.into(), at);
            }
        }
        self.body(event.body, at);
        let is_answered = had_questions && self.questions().is_empty();
        if is_answered && matches!(self.activity, Activity::Waiting) {
            self.activity = Activity::thinking(self.is_react(), at);
        }
    }

    /// Takes what the design's agent reports, or words. What its events do not tell apart, such as the end of a call,
    /// follows from the turn's own.
    pub(crate) fn told(&mut self, told: StoryEvent, at: TimeMs) {
        match told {
            StoryEvent::Words(words) => self.note(Tone::Plain, &words),
            StoryEvent::Agent(AgentEvent::Thought(text)) => {
                let thought = Entry::Thought(clean::text(&text));
                match self.answer.take() {
                    Some(number) => self.transcript.change(number, |it| *it = thought),
                    None => drop(self.transcript.push(thought)),
                }
            }
            StoryEvent::Agent(AgentEvent::ToolCall { name, args }) => {
                let arguments = serde_json::from_str(&args).unwrap_or(Value::String(args));
                self.activity = Activity::of_call(&Card::call(&name, &arguments), true, at);
            }
            StoryEvent::Agent(AgentEvent::ToolOutput(_)) => {
                self.activity = Activity::thinking(true, at)
            }
            StoryEvent::Agent(AgentEvent::Error(text)) => self.note(Tone::Bad, &text),
            StoryEvent::Agent(AgentEvent::FinalResponse(text)) => self.final_answer(&text),
        }
    }

    fn body(&mut self, body: EventBody, at: TimeMs) {
        let is_react = self.is_react();
        match body {
            EventBody::Init(init) => self.init(*init, at),
            EventBody::StepStarted { .. } => {
                self.activity = Activity::thinking(is_react, at);
            }
            EventBody::TextDelta { text } => self.text(&text, at),
            EventBody::ReasoningDelta { text } => self.reasoning(&text),
            EventBody::ToolCallPending {
                id,
                name,
                arguments,
            } => {
                let card = Card::call(&name, &arguments);
                self.open_card(id, card);
            }
            EventBody::ToolCallStarted { id } => {
                self.card(&id, |card| card.is_running = true);
                if let Some(Entry::Card(card)) =
                    self.calls.get(&id).and_then(|it| self.transcript.get(*it))
                {
                    self.activity = Activity::of_call(card, is_react, at);
                }
            }
            EventBody::ToolOutputDelta { id, text } => self.card(&id, |card| card.push(&text)),
            EventBody::ToolCallFinished {
                id,
                ok,
                code,
                result,
                duration_ms,
                ..
            } => {
                let said =
                    code.map_or_else(String::new, |it| words::failed_call(it.as_str()).to_owned());
                self.card(&id, |card| {
                    let end = CardEnd {
                        is_ok: ok,
                        said,
                        took_ms: card.is_running.then_some(duration_ms),
                    };
                    card.finish(end, &result);
                });
                self.calls.remove(&id);
                self.activity = Activity::thinking(is_react, at);
                if !self.questions().is_empty() {
                    self.activity = Activity::Waiting;
                }
            }
            body => self.of_turn(body, at),
        }
    }

    /// Takes what is about the turn as a whole.
    fn of_turn(&mut self, body: EventBody, at: TimeMs) {
        match body {
            EventBody::ToolCallRewritten { id, arguments, .. } => {
                self.card(&id, |card| card.set_arguments(&arguments));
            }
            EventBody::ApprovalResolved {
                id,
                approved,
                reason,
                arguments,
            } => {
                if let Some(arguments) = arguments {
                    self.card(&id, |card| card.set_arguments(&arguments));
                }
                // A card says by itself why its call was denied.
                let reason = reason.filter(|_| !approved && !self.calls.contains_key(&id));
                if let Some(reason) = reason {
                    self.note(Tone::Plain, &format!("denied: {reason}"));
                }
            }
            EventBody::TodoChanged { items } => self.todo = items,
            EventBody::QuestionAsked { .. } => self.activity = Activity::Waiting,
            EventBody::ChildEvent { id, event } => {
                if matches!(event.body, EventBody::QuestionAsked { .. }) {
                    self.activity = Activity::Waiting;
                }
                self.card(&id, |card| card.take_child(&event));
            }
            EventBody::Parked { questions } => {
                let before = std::mem::take(&mut self.answered);
                let is_again = |it: &Question| {
                    let mut same = before.iter().filter(|before| before.id == it.id);
                    same.any(|before| before.hash != it.hash)
                };
                if questions.iter().any(is_again) {
                    self.note(Tone::Warn, ASKED_AGAIN);
                }
                self.activity = Activity::Waiting;
            }
            EventBody::Resumed { .. } => self.is_in_turn = true,
            EventBody::Result(result) => self.result(&result),
            body => self.aside(body, at),
        }
    }

    /// Tells of what happens beside the conversation.
    fn aside(&mut self, body: EventBody, at: TimeMs) {
        match body {
            EventBody::RequestQueued => self.activity = Activity::queued(at),
            EventBody::Warning { text } => self.note(Tone::Warn, &text),
            EventBody::Steered { text, .. } => {
                let (words, quotes) = Quote::split_words(&text);
                self.transcript.push(Entry::Steered(clean::text(&words)));
                self.quote(&quotes);
            }
            EventBody::CompactionStarted { .. } => self.activity = Activity::summarising(at),
            EventBody::Compacted { .. } => self.has_summary = true,
            _ => {}
        }
    }

    fn init(&mut self, init: InitEvent, at: TimeMs) {
        self.is_in_turn = true;
        (self.has_summary, self.only_summary) = (false, false);
        self.model = Some(init.model);
        self.profile = Some(init.profile);
        self.reader = EventReader::default();
        self.activity = Activity::thinking(self.is_react(), at);
    }

    fn text(&mut self, text: &str, at: TimeMs) {
        let number = match self.answer.filter(|_| !self.totals.fold().begins_text()) {
            Some(number) => number,
            None => self.transcript.push(Entry::Answer(Answer::default())),
        };
        self.answer = Some(number);
        self.transcript.change(number, |entry| {
            if let Entry::Answer(answer) = entry {
                answer.push(text);
            }
        });
        self.activity = Activity::writing(at);
    }

    fn reasoning(&mut self, text: &str) {
        let number = match self.thought.filter(|_| !self.totals.fold().begins_text()) {
            Some(number) => number,
            None => self.transcript.push(Entry::Thought(String::new())),
        };
        self.thought = Some(number);
        let text = clean::text(text);
        self.transcript.change(number, |entry| {
            if let Entry::Thought(thought) = entry {
                thought.push_str(&text);
            }
        });
    }

    fn open_card(&mut self, id: CallId, card: Card) {
        let number = self.transcript.push(Entry::Card(Box::new(card)));
        if self.calls.len() >= OPEN_CALLS_MAX {
            self.calls.clear();
        }
        self.calls.insert(id, number);
    }

    fn card(&mut self, id: &CallId, change: impl FnOnce(&mut Card)) {
        if let Some(number) = self.calls.get(id) {
            self.transcript.change(*number, |entry| {
                if let Entry::Card(card) = entry {
                    change(card);
                }
            });
        }
    }

    /// Returns the subagents of the turn, the first one first: the calls that started them, and what they do.
    pub(crate) fn subagents(&self) -> Vec<(String, &Child)> {
        let of_turn = self.transcript.latest();
        let of_turn = of_turn.take_while(|it| !matches!(it.1, Entry::Asked(_)));
        let subagents = of_turn.filter_map(|it| match it.1 {
            Entry::Card(card) => Some((card.line(), card.child()?)),
            _ => None,
        });
        let mut subagents: Vec<_> = subagents.collect();
        subagents.reverse();
        subagents
    }

    /// Returns the call that a question is about: its tool's name and its arguments.
    pub(crate) fn call_asked_about(&self, question: &Question) -> Option<(String, Value)> {
        if question.child.is_some() {
            // Its card is that of the subagent.
            let subject = &question.subject;
            let is_known = !subject.tool.is_empty();
            return is_known.then(|| (subject.tool.clone(), subject.arguments.clone()));
        }
        let card = self.open_call(question.call.as_ref()?)?;
        Some((card.name().to_owned(), card.arguments().clone()))
    }

    fn open_call(&self, call: &CallId) -> Option<&Card> {
        match self.transcript.get(*self.calls.get(call)?)? {
            Entry::Card(card) => Some(card),
            _ => None,
        }
    }

    /// The answer as it is at last: what was streamed stays where it is the same.
    fn final_answer(&mut self, text: &str) {
        let shown = self.answer.and_then(|it| match self.transcript.get(it) {
            Some(Entry::Answer(answer)) => Some(answer.source().trim().to_owned()),
            _ => None,
        });
        let is_shown = shown.as_deref() == Some(clean::text(text).trim());
        let said = self.totals.latest().map(TurnView::last_said);
        let is_said = shown.is_some() && said.is_some_and(|said| said.trim() == text.trim());
        if !is_shown && !is_said && !text.trim().is_empty() {
            self.transcript.push(Entry::Answer(Answer::new(text)));
        }
        self.close_texts();
    }

    /// Returns whether the latest turn only summed up what was said before.
    pub(super) fn only_summed_up(&self) -> bool {
        self.only_summary
    }

    fn result(&mut self, result: &ResultEvent) {
        let reason = result.stop_reason;
        let turn = self.totals.latest();
        let is_built = turn.is_some_and(|turn| turn.built_answer().is_some());
        let found = turn.map_or("", TurnView::found).to_owned();
        self.only_summary = is_built && self.has_summary && reason == StopReason::Complete;
        match reason {
            _ if self.is_react() => {
                let last = EventReader::last(reason, result.text.clone());
                self.told(last.into(), TimeMs(0));
            }
            StopReason::Complete => self.final_answer(&result.text),
            // The person who stopped it has seen what came: the answer that is built of it would say it again.
            StopReason::Cancelled => self.close_texts(),
            _ if is_built => self.final_answer(&found),
            _ => {
                self.final_answer(&result.text);
                if result.error.is_none() {
                    let text = format!("the answer is incomplete: {}", stopped_by(reason));
                    self.note(Tone::Warn, &text);
                }
            }
        }
        if reason == StopReason::Cancelled {
            self.note(Tone::Warn, "stopped");
        }
        // A summary is an answer that no step said.
        self.say_failure(result, is_built && reason != StopReason::Complete);
        let cost = result.cost_usd.filter(|it| *it > 0.0);
        let cost = cost.map_or_else(String::new, |it| format!(" · {}", dollars(it)));
        let steps = counted(result.steps, "step");
        let took = took(result.elapsed_ms);
        self.transcript
            .push(Entry::End(format!("{steps} · {took}{cost}")));
        self.close_texts();
        self.calls.clear();
        self.activity = Activity::Idle;
        self.is_in_turn = false;
        self.ended = Some(reason);
    }

    /// Says why a turn has no answer, and what to do about it.
    fn say_failure(&mut self, result: &ResultEvent, is_built: bool) {
        let is_stopped = result.stop_reason == StopReason::Cancelled && result.error.is_none();
        if is_stopped || (result.error.is_none() && !is_built) {
            return;
        }
        let Failure { message, hint } = Failure::of(result, self.target.as_ref());
        // The design's own answer says why.
        if !self.is_react() {
            self.note(Tone::Bad, &message);
        }
        if let Some(hint) = hint {
            self.note(Tone::Plain, &hint);
        }
    }

    fn cell_event(&mut self, event: CellEvent) {
        match event {
            CellEvent::Started { cell, .. } => {
                let card = match &cell {
                    Cell::Shell(command) => Card::own("$", command),
                    Cell::Python(code) => Card::own(">>>", code),
                };
                self.cell = Some(self.transcript.push(Entry::Card(Box::new(card))));
            }
            CellEvent::Output { text } => self.cell(|card| card.push(&text)),
            CellEvent::Ended { end } => {
                let (is_ok, said, printed) = told_of(&end);
                let end = CardEnd {
                    is_ok,
                    said,
                    took_ms: None,
                };
                self.cell(|card| card.finish(end, &Value::String(printed)));
                self.cell = None;
            }
        }
    }

    fn cell(&mut self, change: impl FnOnce(&mut Card)) {
        if let Some(number) = self.cell {
            self.transcript.change(number, |entry| {
                if let Entry::Card(card) = entry {
                    change(card);
                }
            });
        }
    }
}

fn told_of(end: &CellEnd) -> (bool, String, String) {
    match end {
        CellEnd::Shell {
            exit_code, output, ..
        } => match exit_code {
            0 => (true, String::new(), output.clone()),
            code => (false, format!("exit {code}"), output.clone()),
        },
        CellEnd::Python {
            ending,
            stdout,
            stderr,
            traceback,
            ..
        } => {
            use rondo_core::ports::CellEnding;
            let printed = format!("{stdout}{stderr}");
            match ending {
                CellEnding::Returned { value_repr } => {
                    let value = value_repr.clone().unwrap_or_default();
                    (true, String::new(), format!("{printed}{value}"))
                }
                CellEnding::Raised { exc_type, message } => {
                    let raised = traceback
                        .clone()
                        .unwrap_or_else(|| format!("{exc_type}: {message}"));
                    (false, exc_type.clone(), format!("{printed}{raised}"))
                }
                CellEnding::Interrupted => (false, "interrupted".to_owned(), printed),
                CellEnding::Lost { message } => (
                    false,
                    "the interpreter ended".to_owned(),
                    format!("{printed}{message}"),
                ),
                CellEnding::NotRun { message } => {
                    (false, "not run".to_owned(), format!("{printed}{message}"))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
