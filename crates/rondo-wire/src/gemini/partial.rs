//! Calls whose arguments come in pieces, each with its place (Vertex only).
//!
//! Parts that cannot be joined with certainty never make a whole call: an invalid place, a
//! value at an occupied place, an item behind a gap, too much of anything.

use super::chunk::PartialCall;
use crate::json::RawObject;
use rondo_types::FinishReason;
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value, json};

/// The bound on the steps of a place.
const STEPS_MAX: usize = 32;
/// Up to here each whole number is one of its own as a double.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// A call that is not over.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OpenCall {
    /// Its key; `None` if there are too many calls.
    pub(super) number: Option<u32>,
    name: String,
    id: Option<String>,
    arguments: Map<String, Value>,
    /// Fields of its parts beside the call, unchanged.
    fields: Vec<(String, String)>,
    /// Total size in bytes.
    bytes: usize,
    bytes_max: usize,
    /// Set if the latest text continues.
    is_in_text: bool,
    is_broken: bool,
}

/// A call whose arguments are all there.
pub(super) struct Assembled {
    pub(super) number: u32,
    pub(super) arguments: String,
    /// The part to return, where name, arguments and id do not say it all.
    pub(super) part: Option<String>,
}

/// A step of a place.
enum Step<'a> {
    Key(&'a str),
    Item(usize),
}

/// Content of a piece.
enum Leaf {
    Text(String),
    Other(Value),
}

impl OpenCall {
    pub(super) fn new(number: Option<u32>, call: &PartialCall<'_>, bytes_max: usize) -> Self {
        Self {
            number,
            name: call.name().unwrap_or_default().to_owned(),
            id: call.id().map(str::to_owned),
            arguments: Map::new(),
            fields: Vec::new(),
            bytes: 0,
            bytes_max,
            is_in_text: false,
            is_broken: false,
        }
    }

    /// Returns whether a part continues with this call rather than beginning one.
    pub(super) fn is_continued_by(&self, call: &PartialCall<'_>) -> bool {
        call.name().is_none() || (call.id().is_some() && call.id() == self.id.as_deref())
    }

    /// Adds a part.
    pub(super) fn take(&mut self, call: &PartialCall<'_>) {
        if self.is_broken {
            return;
        }
        self.is_broken = self.try_take(call).is_none();
        if self.is_broken {
            // It is not needed any more.
            (self.arguments, self.fields) = (Map::new(), Vec::new());
        }
    }

    fn try_take(&mut self, call: &PartialCall<'_>) -> Option<()> {
        if call.has_unknown || call.id().is_some_and(|id| Some(id) != self.id.as_deref()) {
            return None;
        }
        for (key, value) in &call.fields {
            self.count_bytes(key.len() + value.get().len())?;
            if !self.fields.iter().any(|(known, _)| known == key) {
                let field = (key.to_string(), value.get().to_owned());
                self.fields.push(field);
            }
        }
        if let Some(args) = call.args {
            self.count_bytes(args.get().len())?;
            let args: Map<String, Value> = serde_json::from_str(args.get()).ok()?;
            if !args.is_empty() {
                let is_first = self.arguments.is_empty();
                is_first.then(|| self.arguments = args)?;
            }
        }
        let pieces = call.pieces.map_or("[]", RawValue::get);
        let pieces: Vec<&RawValue> = serde_json::from_str(pieces).ok()?;
        for piece in pieces {
            self.count_bytes(piece.get().len())?;
            self.piece(piece)?;
        }
        Some(())
    }

    fn count_bytes(&mut self, bytes: usize) -> Option<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        (self.bytes <= self.bytes_max).then_some(())
    }

    fn piece(&mut self, raw: &RawValue) -> Option<()> {
        let RawObject(fields) = serde_json::from_str(raw.get()).ok()?;
        let (mut path, mut leaf, mut goes_on) = (None, None, false);
        for (key, value) in &fields {
            let text = value.get();
            let read = match key.as_ref() {
                "jsonPath" => {
                    path = Some(serde_json::from_str::<String>(text).ok()?);
                    continue;
                }
                "willContinue" => {
                    goes_on = text == "true";
                    continue;
                }
                "stringValue" => Leaf::Text(serde_json::from_str(text).ok()?),
                "numberValue" => Leaf::Other(number(text)?),
                "boolValue" => Leaf::Other(Value::Bool(serde_json::from_str(text).ok()?)),
                "nullValue" => Leaf::Other(Value::Null),
                _ => return None,
            };
            leaf.replace(read).is_none().then_some(())?;
        }
        let path = path?;
        // Without a value there is nothing but the news that more comes.
        if let Some(leaf) = leaf {
            put(&mut self.arguments, steps(&path)?, leaf)?;
        }
        self.is_in_text = goes_on;
        Some(())
    }

    /// Ends the call. `is_closed` says that the provider closed it; without that, a text that goes
    /// on is one that was cut off.
    pub(super) fn assembled(self, is_closed: bool) -> Option<Assembled> {
        if self.is_broken || (self.is_in_text && !is_closed) {
            return None;
        }
        let arguments = Value::Object(self.arguments);
        let written = arguments.to_string();
        let part = (!self.fields.is_empty()).then(|| {
            let mut call = json!({ "name": self.name, "args": arguments });
            if let (Some(id), Some(call)) = (self.id, call.as_object_mut()) {
                call.insert("id".to_owned(), id.into());
            }
            let fields = self.fields.iter();
            let fields = fields.map(|(key, value)| format!(",{}:{value}", Value::from(&**key)));
            format!("{{\"functionCall\":{call}{}}}", fields.collect::<String>())
        });
        Some(Assembled {
            number: self.number?,
            arguments: written,
            part,
        })
    }
}

/// Returns whether a call that was not closed may be whole: only a model that ended its reply by
/// itself has said all of it.
pub(super) fn may_be_whole(finish: Option<FinishReason>) -> bool {
    finish == Some(FinishReason::Stop)
}

/// Reads a double. A whole number is written as one, since schemas tell the two apart.
fn number(text: &str) -> Option<Value> {
    let number: f64 = serde_json::from_str(text).ok()?;
    if number.fract() == 0.0 && number.abs() <= EXACT_MAX {
        return format!("{number:.0}").parse::<i64>().ok().map(Value::from);
    }
    Number::from_f64(number).map(Value::Number)
}

/// Reads a place: `$`, then `.key`, `['key']` or `[0]` any number of times, but once at least.
fn steps(path: &str) -> Option<Vec<Step<'_>>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if steps.len() == STEPS_MAX {
            return None;
        }
        let (step, after) = match rest.strip_prefix('.') {
            Some(rest) => {
                let end = rest.find(['.', '[']).unwrap_or(rest.len());
                let (key, after) = rest.split_at(end);
                (Step::Key(key), after)
            }
            None => in_brackets(rest.strip_prefix('[')?)?,
        };
        if matches!(step, Step::Key("")) {
            return None;
        }
        steps.push(step);
        rest = after;
    }
    (!steps.is_empty()).then_some(steps)
}

fn in_brackets(rest: &str) -> Option<(Step<'_>, &str)> {
    let quote = rest.chars().next().filter(|it| matches!(it, '\'' | '"'));
    let Some(quote) = quote else {
        let (index, after) = rest.split_once(']')?;
        let is_plain = index.bytes().all(|it| it.is_ascii_digit());
        return Some((Step::Item(is_plain.then(|| index.parse().ok())??), after));
    };
    let (key, after) = rest.get(1..)?.split_once(quote)?;
    // The escapes of a key are documented nowhere.
    let is_plain = !key.contains('\\');
    Some((
        Step::Key(is_plain.then_some(key)?),
        after.strip_prefix(']')?,
    ))
}

/// Puts a value to its place. Items come in their order, so that no place is far behind the others.
fn put(root: &mut Map<String, Value>, steps: Vec<Step<'_>>, leaf: Leaf) -> Option<()> {
    let mut steps = steps.into_iter().peekable();
    let Some(Step::Key(first)) = steps.next() else {
        return None;
    };
    let empty = |next: Option<&Step<'_>>| match next {
        Some(Step::Key(_)) => Value::Object(Map::new()),
        Some(Step::Item(_)) => Value::Array(Vec::new()),
        None => leaf.begin(),
    };
    let mut is_new = !root.contains_key(first);
    let mut place = root.entry(first).or_insert_with(|| empty(steps.peek()));
    while let Some(step) = steps.next() {
        place = match (step, place) {
            (Step::Key(key), Value::Object(map)) => {
                is_new = !map.contains_key(key);
                map.entry(key).or_insert_with(|| empty(steps.peek()))
            }
            (Step::Item(index), Value::Array(items)) => {
                is_new = index == items.len();
                if is_new {
                    items.push(empty(steps.peek()));
                }
                items.get_mut(index)?
            }
            _ => return None,
        };
    }
    match (leaf, place) {
        (Leaf::Text(more), Value::String(text)) => text.push_str(&more),
        (Leaf::Other(value), place) if is_new || *place == value => {}
        _ => return None,
    }
    Some(())
}

impl Leaf {
    /// Returns the value of a place before this comes to it.
    fn begin(&self) -> Value {
        match self {
            Self::Text(_) => Value::String(String::new()),
            Self::Other(value) => value.clone(),
        }
    }
}
