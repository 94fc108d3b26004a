//! Methods of the Bot API.

use super::form::Form;
use super::seen::{Draft, SeenMessage, span};
use super::state::{State, bad, done};
use crate::{Gate, Response, Step};
use serde_json::{Value, json};

/// The bound on a message's text and on a caption, in UTF-16 units.
const TEXT_MAX: usize = 4096;
const CAPTION_MAX: usize = 1024;
/// The bounds on rich messages and on the data of a button.
const RICH_MAX: usize = 32_768;
const BUTTON_BYTES_MAX: usize = 64;
/// The bounds on uploads, in bytes.
const PHOTO_BYTES_MAX: usize = 10 << 20;
const FILE_BYTES_MAX: usize = 50 << 20;

type Result<T = Response> = std::result::Result<T, Response>;

/// Carries out a request that the description of the API allows.
pub(super) fn run(state: &mut State, method: &str, form: &Form) -> Response {
    let result = match method {
        "getMe" => Ok(done(&state.me)),
        "getUpdates" => get_updates(state, form),
        "getWebhookInfo" => Ok(webhook_info(state)),
        "deleteWebhook" => {
            state.webhook = None;
            Ok(done(&json!(true)))
        }
        "setMyCommands" => set_commands(state, form),
        "sendMessage" | "sendRichMessage" => send_message(state, method, form),
        "sendPhoto" | "sendDocument" => send_file(state, method, form),
        "editMessageText" => edit(state, form),
        "editMessageReplyMarkup" => edit_buttons(state, form),
        "deleteMessage" => delete(state, form),
        "sendMessageDraft" | "sendRichMessageDraft" => draft(state, form),
        "sendChatAction" => {
            let action = form.text("action").unwrap_or_default();
            state.actions.push((chat_id(form), action));
            Ok(done(&json!(true)))
        }
        "answerCallbackQuery" => {
            let id = form.text("callback_query_id").unwrap_or_default();
            state.pressed.push((id, form.text("text")));
            Ok(done(&json!(true)))
        }
        "getFile" => get_file(state, form),
        _ => Err(bad("the scripted server does not do this")),
    };
    result.unwrap_or_else(|refusal| refusal)
}

pub(super) fn chat_id(form: &Form) -> i64 {
    form.number("chat_id").unwrap_or_default()
}

fn get_updates(state: &mut State, form: &Form) -> Result {
    if state.webhook.is_some() {
        let reason = "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first";
        return Err(super::faults::refused(409, reason, &Value::Null));
    }
    let offset = form.number("offset").unwrap_or_default();
    state.confirmed = state.confirmed.max(offset);
    state.waiting.retain(|id, _| *id >= offset);
    let limit = form.number("limit").unwrap_or(100).clamp(1, 100);
    let limit = usize::try_from(limit).unwrap_or(100);
    let allowed = form.json("allowed_updates");
    let is_allowed = |update: &Value| match allowed.as_array() {
        Some(kinds) if !kinds.is_empty() => kinds
            .iter()
            .filter_map(Value::as_str)
            .any(|kind| update.get(kind).is_some()),
        _ => true,
    };
    state.waiting.retain(|_, update| is_allowed(update));
    let updates: Vec<Value> = state.waiting.values().take(limit).cloned().collect();
    let response = done(&json!(updates));
    if !updates.is_empty() || form.number("timeout").unwrap_or_default() == 0 {
        return Ok(response);
    }
    state.wake();
    let gate = Gate::new();
    state.poll = Some(gate.clone());
    Ok(response.before(Step::Gate(gate)))
}

fn webhook_info(state: &State) -> Response {
    done(&json!({
        "url": state.webhook.clone().unwrap_or_default(),
        "has_custom_certificate": false,
        "pending_update_count": state.waiting.len(),
    }))
}

fn set_commands(state: &mut State, form: &Form) -> Result {
    let commands = form.json("commands");
    let names = commands.as_array().into_iter().flatten();
    state.commands = names
        .filter_map(|it| it["command"].as_str().map(str::to_owned))
        .collect();
    let is_fine = |name: &String| {
        (1..=32).contains(&name.len())
            && name
                .bytes()
                .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_')
    };
    match state.commands.iter().all(is_fine) && state.commands.len() <= 100 {
        true => Ok(done(&json!(true))),
        false => Err(bad("BOT_COMMAND_INVALID")),
    }
}

fn send_message(state: &mut State, method: &str, form: &Form) -> Result {
    let mut seen = placed(state, form)?;
    if method == "sendRichMessage" {
        seen.rich = Some(rich(form)?);
    } else {
        (seen.text, seen.entities) = text(form, "text", "entities", TEXT_MAX)?;
        if seen.text.trim().is_empty() {
            return Err(bad("message text is empty"));
        }
    }
    seen.has_preview =
        form.json("link_preview_options")["is_disabled"] != json!(true) && method == "sendMessage";
    Ok(show(state, seen))
}

fn send_file(state: &mut State, method: &str, form: &Form) -> Result {
    let mut seen = placed(state, form)?;
    (seen.text, seen.entities) = text(form, "caption", "caption_entities", CAPTION_MAX)?;
    let (name, max) = match method {
        "sendPhoto" => ("photo", PHOTO_BYTES_MAX),
        _ => ("document", FILE_BYTES_MAX),
    };
    let file = form
        .file(name)
        .ok_or_else(|| bad("there is no file in the request"))?;
    if file.bytes.is_empty() {
        return Err(bad("file must be non-empty"));
    }
    if file.bytes.len() > max {
        return Err(super::faults::refused(
            413,
            "Request Entity Too Large",
            &Value::Null,
        ));
    }
    seen.is_photo = name == "photo";
    seen.file = Some(file);
    Ok(show(state, seen))
}

/// Begins a message where the request says.
fn placed(state: &mut State, form: &Form) -> Result<SeenMessage> {
    let thread_id = form.number("message_thread_id");
    if thread_id.is_some_and(|id| state.lost_threads.contains(&id)) {
        return Err(bad("message thread not found"));
    }
    Ok(SeenMessage {
        message_id: state.take_message_id(),
        chat_id: chat_id(form),
        thread_id,
        text: String::new(),
        entities: Vec::new(),
        rich: None,
        buttons: buttons(form)?,
        file: None,
        is_photo: false,
        reply_to: form.json("reply_parameters")["message_id"].as_i64(),
        before: Vec::new(),
        has_preview: false,
    })
}

fn show(state: &mut State, seen: SeenMessage) -> Response {
    let response = done(&state.sent(&seen));
    state.seen.push(seen);
    response
}

fn text(form: &Form, name: &str, formatting: &str, max: usize) -> Result<(String, Vec<Value>)> {
    let text = form.text(name).unwrap_or_default();
    let units: Vec<u16> = text.encode_utf16().collect();
    if units.len() > max {
        return Err(bad("message is too long"));
    }
    let entities = form.json(formatting);
    let entities: Vec<Value> = entities.as_array().cloned().unwrap_or_default();
    for entity in &entities {
        let covered = units.get(span(entity));
        if !covered.is_some_and(|it| !it.is_empty() && String::from_utf16(it).is_ok()) {
            return Err(bad(&format!("entity {entity} is not within the text")));
        }
    }
    Ok((text, entities))
}

fn rich(form: &Form) -> Result<String> {
    let markdown = form.json("rich_message")["markdown"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    match markdown.chars().count() {
        0 => Err(bad("message text is empty")),
        count if count > RICH_MAX => Err(bad("message is too long")),
        _ => Ok(markdown),
    }
}

fn buttons(form: &Form) -> Result<Vec<(String, String)>> {
    let markup = form.json("reply_markup");
    let rows = markup["inline_keyboard"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let buttons = rows.iter().filter_map(Value::as_array).flatten();
    let buttons: Vec<(String, String)> = buttons
        .map(|it| {
            let field = |name: &str| it[name].as_str().unwrap_or_default().to_owned();
            (field("text"), field("callback_data"))
        })
        .collect();
    let is_fine = |(text, data): &(String, String)| {
        !text.is_empty() && (1..=BUTTON_BYTES_MAX).contains(&data.len())
    };
    match buttons.iter().all(is_fine) {
        true => Ok(buttons),
        false => Err(bad("BUTTON_DATA_INVALID")),
    }
}

fn find<'a>(state: &'a mut State, form: &Form) -> Result<&'a mut SeenMessage> {
    let (chat, message) = (chat_id(form), form.number("message_id"));
    let mut seen = state.seen.iter_mut();
    seen.find(|it| it.chat_id == chat && Some(it.message_id) == message)
        .ok_or_else(|| bad("message to edit not found"))
}

fn edit(state: &mut State, form: &Form) -> Result {
    let (text, entities) = text(form, "text", "entities", TEXT_MAX)?;
    let rich = match form.json("rich_message").is_null() {
        true => None,
        false => Some(rich(form)?),
    };
    let buttons = buttons(form)?;
    let seen = find(state, form)?;
    if text.trim().is_empty() && rich.is_none() {
        return Err(bad("message text is empty"));
    }
    let is_same = (&seen.text, &seen.entities) == (&text, &entities);
    if is_same && seen.rich == rich && seen.buttons == buttons {
        return Err(bad(
            "message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message",
        ));
    }
    seen.before.push(std::mem::replace(&mut seen.text, text));
    (seen.entities, seen.rich, seen.buttons) = (entities, rich, buttons);
    let seen = seen.clone();
    Ok(done(&state.sent(&seen)))
}

fn edit_buttons(state: &mut State, form: &Form) -> Result {
    let buttons = buttons(form)?;
    let seen = find(state, form)?;
    if seen.buttons == buttons {
        return Err(bad("message is not modified"));
    }
    seen.buttons = buttons;
    let seen = seen.clone();
    Ok(done(&state.sent(&seen)))
}

fn delete(state: &mut State, form: &Form) -> Result {
    let (chat, message) = (chat_id(form), form.number("message_id"));
    let before = state.seen.len();
    state
        .seen
        .retain(|it| it.chat_id != chat || Some(it.message_id) != message);
    match state.seen.len() == before {
        true => Err(bad("message to delete not found")),
        false => Ok(done(&json!(true))),
    }
}

fn draft(state: &mut State, form: &Form) -> Result {
    let chat_id = chat_id(form);
    if chat_id <= 0 {
        return Err(bad("drafts are for private chats"));
    }
    let draft_id = form.number("draft_id").unwrap_or_default();
    if draft_id == 0 {
        return Err(bad("draft identifier must be non-zero"));
    }
    let text = match form.json("rich_message").is_null() {
        true => text(form, "text", "entities", TEXT_MAX)?.0,
        false => rich(form)?,
    };
    state.drafts.push(Draft {
        chat_id,
        draft_id,
        text,
    });
    Ok(done(&json!(true)))
}

fn get_file(state: &State, form: &Form) -> Result {
    let id = form.text("file_id").unwrap_or_default();
    let Some(bytes) = state.files.get(&id) else {
        return Err(bad("invalid file_id"));
    };
    if bytes.len() > 20 << 20 {
        return Err(bad("file is too big"));
    }
    Ok(done(&json!({
        "file_id": id,
        "file_unique_id": format!("u-{id}"),
        "file_size": bytes.len(),
        "file_path": format!("documents/{id}"),
    })))
}
