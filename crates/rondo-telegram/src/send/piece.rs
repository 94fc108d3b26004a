//! Sends one message of Telegram.

use super::failure::{is_no_edit, is_no_thread, is_of_form, is_same};
use super::plan::Piece;
use super::{file, message_id};
use crate::channel::{ChatThread, Telegram};
use crate::receive::{encoded, image_type};
use crate::render::FormattedText;
use crate::{ApiError, Form};
use bytes::Bytes;
use frankenstein::methods::{EditMessageTextParams, SendMessageParams, SendRichMessageParams};
use frankenstein::rich_message::InputRichMessage;
use frankenstein::types::{
    InlineKeyboardButton, InlineKeyboardMarkup, LinkPreviewOptions, MessageEntity, ReplyMarkup,
    ReplyParameters,
};
use rondo_hub::channel::{Choice, Outgoing};
use serde::Serialize;
use serde_json::Value;

/// Buttons beside each other.
const BUTTONS_A_ROW: usize = 2;
/// The bounds on buttons of a message, and on what one is called.
const BUTTONS_MAX: usize = 20;
const LABEL_CHARS_MAX: usize = 60;

/// Parameters that accompany a text.
struct Context {
    place: ChatThread,
    /// The message to edit instead of sending one.
    edit: Option<i32>,
    reply_to: Option<i32>,
    buttons: Option<InlineKeyboardMarkup>,
}

/// A text in one of its forms.
enum Body {
    Rich(String),
    Text(String, Vec<MessageEntity>),
}

impl Telegram {
    /// Sends a piece and returns the id of the message.
    pub(super) async fn send_piece(
        &self,
        place: ChatThread,
        message: &Outgoing,
        piece: &Piece,
        is_first: bool,
        is_last_text: bool,
    ) -> Result<i32, ApiError> {
        let number = |it: &String| it.parse().ok();
        let placeholder = message.placeholder.as_ref();
        let replied = message.reply_to.as_ref().filter(|_| !place.is_private());
        let context = Context {
            place,
            edit: placeholder
                .and_then(|it| number(&it.0))
                .filter(|_| is_first),
            reply_to: replied.and_then(number).filter(|_| is_first),
            buttons: is_last_text.then(|| keyboard(&message.choices)).flatten(),
        };
        match piece {
            Piece::Rich(markdown) => self.send_text(context, Body::Rich(markdown.clone())).await,
            Piece::Text(text) => self.send_formatted(context, text).await,
            Piece::Document(name, bytes) => {
                self.send_file(context, "sendDocument", name, bytes.clone())
                    .await
            }
            Piece::File(file) => match file::read(file).await {
                Ok(bytes) => self.send_attached(context, &file.name, bytes).await,
                Err(notice) => {
                    self.send_formatted(context, &FormattedText::plain(&notice))
                        .await
                }
            },
        }
    }

    /// Sends a text with its entities, or without where Telegram does not take them.
    async fn send_formatted(
        &self,
        context: Context,
        text: &FormattedText,
    ) -> Result<i32, ApiError> {
        let again = Context {
            buttons: context.buttons.clone(),
            ..context
        };
        let body = Body::Text(text.text.clone(), text.message_entities());
        match self.send_text(context, body).await {
            Err(error) if !text.entities.is_empty() && is_of_form(&error) => {
                tracing::info!(%error, "sent without formatting");
                let body = Body::Text(text.text.clone(), Vec::new());
                self.send_text(again, body).await
            }
            sent => sent,
        }
    }

    /// Sends a text, as an edit if there is a message to edit, and outside of its topic if that is gone.
    async fn send_text(&self, mut context: Context, body: Body) -> Result<i32, ApiError> {
        if let Some(id) = context.edit.take() {
            match self.edit(&context, id, &body).await {
                Err(error) if is_same(&error) => return Ok(id),
                Err(error) if is_no_edit(&error) => {}
                edited => return edited.map(|_| id),
            }
        }
        match self.send_new(&context, &body).await {
            Err(error) if context.place.thread_id.is_some() && is_no_thread(&error) => {
                context.place.thread_id = None;
                self.send_new(&context, &body).await
            }
            sent => sent,
        }
    }

    async fn edit(&self, context: &Context, id: i32, body: &Body) -> Result<i32, ApiError> {
        let edit = EditMessageTextParams::builder()
            .chat_id(context.place.id())
            .message_id(id)
            .maybe_reply_markup(context.buttons.clone());
        let edit = match body {
            Body::Rich(markdown) => edit.rich_message(rich_message(markdown)).build(),
            Body::Text(text, entities) => edit
                .text(text)
                .entities(entities.clone())
                .link_preview_options(no_preview())
                .build(),
        };
        self.sent("editMessageText", context.place, &edit).await
    }

    async fn send_new(&self, context: &Context, body: &Body) -> Result<i32, ApiError> {
        let place = context.place;
        let reply = context.reply_to.map(|id| {
            ReplyParameters::builder()
                .message_id(id)
                .allow_sending_without_reply(true)
                .build()
        });
        let markup = context
            .buttons
            .clone()
            .map(ReplyMarkup::InlineKeyboardMarkup);
        match body {
            Body::Rich(markdown) => {
                let message = SendRichMessageParams::builder()
                    .chat_id(place.id())
                    .maybe_message_thread_id(place.thread_id)
                    .rich_message(rich_message(markdown))
                    .maybe_reply_parameters(reply)
                    .maybe_reply_markup(markup)
                    .build();
                self.sent("sendRichMessage", place, &message).await
            }
            Body::Text(text, entities) => {
                let message = SendMessageParams::builder()
                    .chat_id(place.id())
                    .maybe_message_thread_id(place.thread_id)
                    .text(text)
                    .entities(entities.clone())
                    .link_preview_options(no_preview())
                    .maybe_reply_parameters(reply)
                    .maybe_reply_markup(markup)
                    .build();
                self.sent("sendMessage", place, &message).await
            }
        }
    }

    /// Sends a picture as such, and all else, or a picture that Telegram does not take as one, as a file.
    async fn send_attached(
        &self,
        context: Context,
        name: &str,
        bytes: Bytes,
    ) -> Result<i32, ApiError> {
        let is_photo = matches!(image_type(&bytes), Some("image/jpeg" | "image/png"));
        if is_photo && bytes.len() <= file::PHOTO_BYTES_MAX {
            let again = Context {
                buttons: None,
                ..context
            };
            match self
                .send_file(again, "sendPhoto", name, bytes.clone())
                .await
            {
                Err(error) if is_of_form(&error) => {}
                sent => return sent,
            }
        }
        self.send_file(context, "sendDocument", name, bytes).await
    }

    async fn send_file(
        &self,
        context: Context,
        method: &'static str,
        name: &str,
        bytes: Bytes,
    ) -> Result<i32, ApiError> {
        let place = context.place;
        let send = |thread_id: Option<i32>| {
            let part = if method == "sendPhoto" {
                "photo"
            } else {
                "document"
            };
            let form = Form::default()
                .field("chat_id", place.chat_id.to_string())
                .maybe("message_thread_id", thread_id.map(|it| it.to_string()))
                .file(part, name, bytes.clone());
            async move {
                self.in_pace(method, place).await?;
                id_of(method, &self.api.upload(method, form).await?)
            }
        };
        match send(place.thread_id).await {
            Err(error) if place.thread_id.is_some() && is_no_thread(&error) => send(None).await,
            sent => sent,
        }
    }

    async fn sent(
        &self,
        method: &'static str,
        place: ChatThread,
        parameters: &impl Serialize,
    ) -> Result<i32, ApiError> {
        self.in_pace(method, place).await?;
        id_of(method, &self.api.call(method, parameters).await?)
    }

    /// Waits for the pace. A long wait is an error as if Telegram had asked for it.
    async fn in_pace(&self, method: &'static str, place: ChatThread) -> Result<(), ApiError> {
        let waited = self.paced(place).await;
        waited.map_err(|wait| ApiError::Refused {
            method,
            code: 429,
            description: "the chat has had as many messages as Telegram allows".to_owned(),
            retry_after: Some(wait),
            migrate_to: None,
        })
    }
}

/// Turns previews of links off: fetching one tells the server of the link that it was sent, and what is in it.
pub(crate) fn no_preview() -> LinkPreviewOptions {
    LinkPreviewOptions::builder().is_disabled(true).build()
}

/// Links in the text are not found by Telegram either, since their previews cannot be turned off.
fn rich_message(markdown: &str) -> InputRichMessage {
    InputRichMessage::builder()
        .markdown(markdown)
        .skip_entity_detection(true)
        .build()
}

/// It was sent, so that an answer without an id must not have it sent again.
fn id_of(method: &'static str, message: &Value) -> Result<i32, ApiError> {
    message_id(message).ok_or_else(|| ApiError::Unknown {
        method,
        reason: "the answer has no message id".to_owned(),
    })
}

fn keyboard(choices: &[Choice]) -> Option<InlineKeyboardMarkup> {
    let buttons = choices.iter().take(BUTTONS_MAX).filter_map(|choice| {
        let label: String = choice.label.chars().take(LABEL_CHARS_MAX).collect();
        let button = InlineKeyboardButton::builder();
        Some(button.text(label).callback_data(encoded(choice)?).build())
    });
    let buttons: Vec<InlineKeyboardButton> = buttons.collect();
    let rows = buttons.chunks(BUTTONS_A_ROW).map(<[_]>::to_vec);
    (!buttons.is_empty()).then(|| {
        InlineKeyboardMarkup::builder()
            .inline_keyboard(rows.collect::<Vec<_>>())
            .build()
    })
}
