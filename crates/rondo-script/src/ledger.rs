//! The calls of a script: those that are in its records get their results from there, all others are made and recorded.

use crate::branch::{self, Branch};
use crate::error::{Abort, CallError, ScriptError};
use rondo_core::FROM_OUTSIDE;
use rondo_core::ports::{RecordBody, ScriptCall, ScriptRun};
use rondo_runtime::script::ScriptSession;
use rondo_types::CallId;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Calls of one script; with more it ends.
pub(crate) const CALLS_MAX: usize = 100_000;
/// Bytes of one result in the records, as JSON.
pub(crate) const RESULT_BYTES_MAX: usize = 8 << 20;
/// Bytes of a hash of arguments that are kept.
const HASH_BYTES: usize = 8;

/// Recording of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeptPart {
    /// It changes nothing: its result is recorded with the next that does, or at the end.
    Look,
    /// It may change something: it is recorded before, and its result after it.
    Effect,
    /// Others record its beginning: its result is recorded after it.
    Result,
}

/// A call that is about to be made.
pub(crate) struct NextCall {
    /// Its name, the same in each run.
    pub(crate) id: CallId,
    /// Set if it was begun before, with the recorded data that tells whether it was made.
    pub(crate) begun: Option<Option<Value>>,
}

/// Records of a call.
#[derive(Debug, Clone)]
struct LedgerEntry {
    call: ScriptCall,
    evidence: Option<Value>,
    result: Option<Value>,
    is_used: bool,
}

/// All calls of a script.
pub(crate) struct Ledger {
    run: ScriptRun,
    state: Mutex<State>,
    /// Set if only records are read: calls that they lack fail.
    is_replay: bool,
}

#[derive(Default)]
struct State {
    known: HashMap<(String, u32), LedgerEntry>,
    /// Records that are not written yet.
    waiting: Vec<RecordBody>,
    has_begun: bool,
    made: usize,
}

impl State {
    /// Forgets the calls that a script failed by, if they did nothing. A call that it caught and continued from is no
    /// such call:
    /// a later call follows in its branch, or after the branches that it belongs to.
    fn forget_failures(&mut self) {
        let mut last_places: HashMap<String, u32> = HashMap::new();
        for (branch, place) in self.known.keys() {
            let last = last_places.entry(branch.clone()).or_default();
            *last = (*last).max(*place);
        }
        let is_followed = |branch: &str, place: u32| {
            let last = |branch: &str| last_places.get(branch).copied().unwrap_or_default();
            last(branch) > place
                || branch::above(branch).any(|(above, begun_at)| last(above) > begun_at)
        };
        self.known.retain(|(branch, place), known| {
            let result = known.result.as_ref();
            let did_nothing = result.and_then(|it| it.get("again")) == Some(&Value::Bool(true));
            !did_nothing || branch::is_of_tool(branch) || is_followed(branch, *place)
        });
    }
}

impl Ledger {
    /// One of a script that begins.
    pub(crate) fn new(run: ScriptRun) -> Self {
        Self {
            run,
            state: Mutex::default(),
            is_replay: false,
        }
    }

    /// One of a script that runs again over its records. If it failed by a call that did nothing, that call is made again.
    pub(crate) fn over(run: ScriptRun, records: Vec<RecordBody>, is_replay: bool) -> Self {
        let mut state = State {
            has_begun: true,
            ..State::default()
        };
        for record in records {
            match record {
                RecordBody::ScriptCallStarted { call, evidence } => {
                    let key = (call.branch.clone(), call.place);
                    let known = LedgerEntry {
                        call,
                        evidence,
                        result: None,
                        is_used: false,
                    };
                    state.known.insert(key, known);
                }
                RecordBody::ScriptCallFinished { call, result } => {
                    let key = (call.branch.clone(), call.place);
                    let evidence = state.known.get(&key).and_then(|it| it.evidence.clone());
                    let known = LedgerEntry {
                        call,
                        evidence,
                        result: Some(result),
                        is_used: false,
                    };
                    state.known.insert(key, known);
                }
                RecordBody::ScriptFinished { error: Some(_), .. } if !is_replay => {
                    state.forget_failures();
                }
                _ => {}
            }
        }
        Self {
            run,
            state: Mutex::new(state),
            is_replay,
        }
    }

    /// Returns the description of the script.
    pub(crate) fn run(&self) -> &ScriptRun {
        &self.run
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the result of a call: the recorded one, or that of `make`.
    ///
    /// # Errors
    /// The failure of `make`, or a difference of the script from its records, or a failure to write them.
    pub(crate) async fn call<F>(
        &self,
        script: &Arc<ScriptSession>,
        call: UnplacedCall<'_>,
        evidence: impl AsyncFnOnce(&CallId) -> Option<Value>,
        make: F,
    ) -> Result<Value, CallError>
    where
        F: AsyncFnOnce(NextCall) -> Result<Value, CallError>,
    {
        let keeping = call.keeping;
        let (call, known) = self.place(call)?;
        let begun = match known {
            Some(LedgerEntry {
                result: Some(result),
                ..
            }) => {
                if result.get(FROM_OUTSIDE) == Some(&Value::Bool(true)) {
                    script.outside_text().note();
                }
                return result_of(&result);
            }
            Some(known) => Some(known.evidence),
            None if self.is_replay => return Err(missing(&call, &self.run.name)),
            None => None,
        };
        let id = ScriptSession::call_id(&call.branch, call.place);
        if keeping == KeptPart::Effect && begun.is_none() {
            let evidence = evidence(&id).await;
            let started = RecordBody::ScriptCallStarted {
                call: call.clone(),
                evidence,
            };
            self.write(script, Some(started)).await?;
        } else if keeping == KeptPart::Result {
            self.begin(script).await?;
        }
        let made = make(NextCall { id, begun }).await;
        let mut result = match &made {
            Ok(value) => json!({ "ok": value }),
            Err(CallError::Abort(_)) => return made,
            Err(error) => failure_of(error, keeping),
        };
        // So that a resumed script knows it as well.
        if script.outside_text().is_present()
            && let Some(result) = result.as_object_mut()
        {
            result.insert(FROM_OUTSIDE.to_owned(), true.into());
        }
        let result = redacted(script, result);
        if size(&result) > RESULT_BYTES_MAX {
            let function = &call.function;
            let why = format!("the result of `{function}` is longer than {RESULT_BYTES_MAX} bytes");
            return Err(CallError::Failed(why));
        }
        let finished = RecordBody::ScriptCallFinished {
            call,
            result: result.clone(),
        };
        match keeping {
            KeptPart::Look => self.state().waiting.push(finished),
            KeptPart::Effect | KeptPart::Result => self.write(script, Some(finished)).await?,
        }
        match made {
            Ok(_) => result_of(&result),
            failed => failed,
        }
    }

    /// Counts the call in its branch, and compares it with the records.
    fn place(
        &self,
        call: UnplacedCall<'_>,
    ) -> Result<(ScriptCall, Option<LedgerEntry>), CallError> {
        let call = ScriptCall {
            branch: call.branch.name.clone(),
            place: call.place,
            function: call.function.to_owned(),
            line: call.line,
            hash: hash(call.arguments),
        };
        let mut state = self.state();
        state.made += 1;
        if state.made > CALLS_MAX {
            let why = format!("the script made more than {CALLS_MAX} calls");
            return Err(CallError::end(ScriptError::Raised(why)));
        }
        let key = (call.branch.clone(), call.place);
        let Some(known) = state.known.get_mut(&key) else {
            return Ok((call, None));
        };
        if known.call.function != call.function || known.call.hash != call.hash {
            return Err(diverged(&call, &known.call, &self.run.name));
        }
        known.is_used = true;
        Ok((call, Some(known.clone())))
    }

    /// Begins the session, and writes what waits: something else records the beginning of what follows, and is found
    /// by the session alone.
    async fn begin(&self, script: &Arc<ScriptSession>) -> Result<(), CallError> {
        self.write_all(script, None, true).await
    }

    /// Writes what waits, and one record more. The first one begins the session.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) async fn write(
        &self,
        script: &Arc<ScriptSession>,
        more: Option<RecordBody>,
    ) -> Result<(), CallError> {
        self.write_all(script, more, false).await
    }

    async fn write_all(
        &self,
        script: &Arc<ScriptSession>,
        more: Option<RecordBody>,
        begins: bool,
    ) -> Result<(), CallError> {
        if self.is_replay {
            return Ok(());
        }
        let records = {
            let mut state = self.state();
            let mut records = std::mem::take(&mut state.waiting);
            records.extend(more);
            if !state.has_begun && (begins || !records.is_empty()) {
                records.insert(0, RecordBody::ScriptStarted(self.run.clone()));
                state.has_begun = true;
            }
            records
        };
        if records.is_empty() {
            return Ok(());
        }
        // By a task of its own: a call that is dropped, as those of branches beside one that fails are, must not leave a
        // write half done, nor keep others from writing.
        let (script, name) = (Arc::clone(script), self.run.name.clone());
        let writing = tokio::spawn(async move { script.record(&name, records).await });
        let written = writing.await.map_err(CallError::failed)?;
        written.map_err(CallError::Setup)
    }

    /// Returns whether the script has made calls that are recorded, or are about to be.
    pub(crate) fn has_records(&self) -> bool {
        let state = self.state();
        state.has_begun || !state.waiting.is_empty()
    }

    /// Returns whether the script has a session.
    pub(crate) fn has_begun(&self) -> bool {
        self.state().has_begun
    }

    /// Returns recorded calls that were not made, the first of each branch, for people.
    pub(crate) fn unused(&self) -> Vec<String> {
        let state = self.state();
        let mut unused: Vec<&ScriptCall> = state
            .known
            .values()
            .filter(|it| !it.is_used)
            .map(|it| &it.call)
            .collect();
        unused.sort_by(|one, other| (&one.branch, one.place).cmp(&(&other.branch, other.place)));
        let name = &self.run.name;
        let shown = unused
            .into_iter()
            .map(|it| format!("{name}:{}: `{}` is no longer called", it.line, it.function));
        shown.collect()
    }
}

/// A call, before it has its place.
#[derive(Clone, Copy)]
pub(crate) struct UnplacedCall<'a> {
    /// Caller of the function.
    pub(crate) branch: &'a Branch,
    /// Its place in the branch.
    pub(crate) place: u32,
    pub(crate) function: &'static str,
    /// The line of the script.
    pub(crate) line: u32,
    /// Arguments of the call.
    pub(crate) arguments: &'a Value,
    /// Recording of the call.
    pub(crate) keeping: KeptPart,
}

fn hash(arguments: &Value) -> String {
    let digest = Sha256::digest(arguments.to_string());
    data_encoding::HEXLOWER.encode(digest.get(..HASH_BYTES).unwrap_or_default())
}

fn size(value: &Value) -> usize {
    value.to_string().len()
}

/// Returns the record of a failure, with a mark if the call may be made again because it did nothing.
fn failure_of(error: &CallError, keeping: KeptPart) -> Value {
    let did_nothing = match error {
        CallError::NotDone(_) | CallError::Setup(_) => true,
        _ => keeping != KeptPart::Effect,
    };
    let why = error.reason();
    match did_nothing {
        true => json!({ "error": why, "again": true }),
        false => json!({ "error": why }),
    }
}

fn result_of(recorded: &Value) -> Result<Value, CallError> {
    match (recorded.get("ok"), recorded.get("error")) {
        (Some(value), _) => Ok(value.clone()),
        (None, Some(Value::String(why))) => Err(CallError::Failed(why.clone())),
        _ => Err(CallError::failed("the record of the call is malformed")),
    }
}

fn redacted(script: &Arc<ScriptSession>, value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(script.secrets().text(text)),
        Value::Array(items) => items.into_iter().map(|it| redacted(script, it)).collect(),
        Value::Object(fields) => {
            let fields = fields
                .into_iter()
                .map(|(key, it)| (key, redacted(script, it)));
            Value::Object(fields.collect())
        }
        other => other,
    }
}

fn at(call: &ScriptCall, name: &str) -> String {
    format!("{name}:{}", call.line)
}

fn diverged(now: &ScriptCall, recorded: &ScriptCall, name: &str) -> CallError {
    let what = match now.function == recorded.function {
        true => format!("`{}` is called with other arguments", now.function),
        false => format!("`{}` is called", now.function),
    };
    let branch = match now.branch.is_empty() {
        true => String::new(),
        false => format!(" of branch {}", now.branch),
    };
    let message = format!(
        "{}: {what}, but the records have `{}` of line {} (call {}{branch}): the script took a different path when it was recorded",
        at(now, name),
        recorded.function,
        recorded.line,
        now.place,
    );
    CallError::Abort(Abort::Error(ScriptError::Diverged(message)))
}

fn missing(call: &ScriptCall, name: &str) -> CallError {
    let message = format!(
        "{}: `{}` is called, and the records end before it",
        at(call, name),
        call.function
    );
    CallError::Abort(Abort::Error(ScriptError::RecordsEnd(message)))
}
