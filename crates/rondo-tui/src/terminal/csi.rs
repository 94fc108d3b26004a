//! Control sequences as keys, the mouse and the focus.

use super::input::text_key;
use crossterm::event::{
    Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};

/// The codes that kitty's protocol gives keys without a character of their own.
const PRIVATE_USE: std::ops::RangeInclusive<u32> = 57_344..=63_743;

/// Returns the event of a control sequence, from its parameters and its last byte; none for answers of the terminal and
/// for unknown ones.
pub(super) fn event(parameters: &[u8], last: u8) -> Option<Event> {
    let text = std::str::from_utf8(parameters).ok()?;
    match (text, last) {
        ("", b'I') => return Some(Event::FocusGained),
        ("", b'O') => return Some(Event::FocusLost),
        _ => {}
    }
    if let Some(report) = text.strip_prefix('<') {
        return mouse(report, last).map(Event::Mouse);
    }
    key(text, last).map(Event::Key)
}

fn key(text: &str, last: u8) -> Option<KeyEvent> {
    // Anything else is private, such as the answer to a question for the terminal's attributes.
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, ';' | ':');
    if !text.chars().all(is_number) {
        return None;
    }
    let fields: Vec<&str> = text.split(';').collect();
    let field = |at: usize| fields.get(at).copied().unwrap_or_default();
    let number = first_number(field(0));
    match last {
        b'u' => character(field(0), field(1)),
        b'~' if number == Some(27) => character(field(2), field(1)),
        b'~' => with(tilde(number?)?, field(1)),
        b'Z' => with(KeyCode::BackTab, "2"),
        last => with(letter(last)?, field(1)),
    }
}

fn first_number(field: &str) -> Option<u32> {
    field.split(':').next()?.parse().ok()
}

/// Returns the key of a sequence that ends in a letter.
fn letter(last: u8) -> Option<KeyCode> {
    Some(match last {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'H' => KeyCode::Home,
        b'F' => KeyCode::End,
        b'P' => KeyCode::F(1),
        b'Q' => KeyCode::F(2),
        b'S' => KeyCode::F(4),
        _ => return None,
    })
}

/// Returns the key of a sequence that ends in a tilde.
fn tilde(number: u32) -> Option<KeyCode> {
    let function = |from: u32, first: u32| u8::try_from(number - from + first).ok().map(KeyCode::F);
    match number {
        1 | 7 => Some(KeyCode::Home),
        2 => Some(KeyCode::Insert),
        3 => Some(KeyCode::Delete),
        4 | 8 => Some(KeyCode::End),
        5 => Some(KeyCode::PageUp),
        6 => Some(KeyCode::PageDown),
        11..=15 => function(11, 1),
        17..=21 => function(17, 6),
        23..=26 => function(23, 11),
        28..=29 => function(28, 15),
        31..=34 => function(31, 17),
        _ => None,
    }
}

/// Returns the key that `ESC O` and this byte are.
pub(super) fn ss3(last: u8) -> Option<KeyEvent> {
    let code = match last {
        b'R' => KeyCode::F(3),
        b'M' => KeyCode::Enter,
        last => letter(last)?,
    };
    Some(KeyEvent::new(code, KeyModifiers::NONE))
}

/// Returns the function key of the Linux console that `ESC [ [` and this byte are.
pub(super) fn console_key(last: u8) -> Option<KeyEvent> {
    let number = last.checked_sub(b'A').filter(|it| *it < 5)?;
    let code = KeyCode::F(number + 1);
    Some(KeyEvent::new(code, KeyModifiers::NONE))
}

/// Returns a key with the modifiers of a field such as `5`, or `5:3` with what happened to it.
fn with(code: KeyCode, field: &str) -> Option<KeyEvent> {
    let (modifiers, kind) = modifiers(field)?;
    Some(KeyEvent::new_with_kind(code, modifiers, kind))
}

fn modifiers(field: &str) -> Option<(KeyModifiers, KeyEventKind)> {
    let (mask, kind) = field.split_once(':').unwrap_or((field, ""));
    let mask = match mask {
        "" => 0,
        mask => mask.parse::<u16>().ok()?.saturating_sub(1),
    };
    let mut modifiers = KeyModifiers::NONE;
    for (bit, modifier) in [
        (1, KeyModifiers::SHIFT),
        (2, KeyModifiers::ALT),
        (4, KeyModifiers::CONTROL),
        (8, KeyModifiers::SUPER),
        (16, KeyModifiers::HYPER),
        (32, KeyModifiers::META),
    ] {
        if mask & bit != 0 {
            modifiers.insert(modifier);
        }
    }
    let kind = match kind {
        "3" => KeyEventKind::Release,
        "2" => KeyEventKind::Repeat,
        _ => KeyEventKind::Press,
    };
    Some((modifiers, kind))
}

/// Returns the key of a character's code: kitty's protocol, and xterm's for other keys.
fn character(codes: &str, field: &str) -> Option<KeyEvent> {
    let (mut modifiers, kind) = modifiers(field)?;
    let mut all = codes.split(':');
    let code = all.next()?.parse().ok()?;
    let shifted = all.next().and_then(|it| it.parse().ok());
    let code = match code {
        9 if modifiers.contains(KeyModifiers::SHIFT) => KeyCode::BackTab,
        9 => KeyCode::Tab,
        13 => KeyCode::Enter,
        27 => KeyCode::Esc,
        127 => KeyCode::Backspace,
        code if PRIVATE_USE.contains(&code) => functional(code)?,
        code => {
            let with_shift = shifted.filter(|_| modifiers.contains(KeyModifiers::SHIFT));
            let event = text_key(char::from_u32(with_shift.unwrap_or(code))?);
            modifiers |= event.modifiers;
            event.code
        }
    };
    Some(KeyEvent::new_with_kind(code, modifiers, kind))
}

/// Returns the key of a code of kitty's that is not a character's.
fn functional(code: u32) -> Option<KeyCode> {
    let plus =
        |first: char, from: u32| char::from_u32(u32::from(first) + code - from).map(KeyCode::Char);
    Some(match code {
        57_376..=57_398 => KeyCode::F(u8::try_from(code - 57_376 + 13).ok()?),
        57_399..=57_408 => plus('0', 57_399)?,
        57_409 => KeyCode::Char('.'),
        57_410 => KeyCode::Char('/'),
        57_411 => KeyCode::Char('*'),
        57_412 => KeyCode::Char('-'),
        57_413 => KeyCode::Char('+'),
        57_414 => KeyCode::Enter,
        57_415 => KeyCode::Char('='),
        57_416 => KeyCode::Char(','),
        57_417 => KeyCode::Left,
        57_418 => KeyCode::Right,
        57_419 => KeyCode::Up,
        57_420 => KeyCode::Down,
        57_421 => KeyCode::PageUp,
        57_422 => KeyCode::PageDown,
        57_423 => KeyCode::Home,
        57_424 => KeyCode::End,
        57_425 => KeyCode::Insert,
        57_426 => KeyCode::Delete,
        _ => return None,
    })
}

/// Reads `button;column;row` of the mouse.
fn mouse(report: &str, last: u8) -> Option<MouseEvent> {
    let mut fields = report.split(';');
    let mut number = || fields.next()?.parse::<u16>().ok();
    let (buttons, x, y) = (number()?, number()?, number()?);
    let button = (buttons & 0b11) | ((buttons & 0b1100_0000) >> 4);
    let is_moving = buttons & 0b10_0000 != 0;
    let pressed = match button {
        0 => Some(MouseButton::Left),
        1 => Some(MouseButton::Middle),
        2 => Some(MouseButton::Right),
        _ => None,
    };
    let kind = match (button, is_moving, pressed) {
        (_, false, Some(button)) if last == b'm' => MouseEventKind::Up(button),
        (_, false, Some(button)) => MouseEventKind::Down(button),
        (_, true, Some(button)) => MouseEventKind::Drag(button),
        (3, false, _) => MouseEventKind::Up(MouseButton::Left),
        (4, false, _) => MouseEventKind::ScrollUp,
        (5, false, _) => MouseEventKind::ScrollDown,
        (6, false, _) => MouseEventKind::ScrollLeft,
        (7, false, _) => MouseEventKind::ScrollRight,
        (3..=5, true, _) => MouseEventKind::Moved,
        _ => return None,
    };
    let mut modifiers = KeyModifiers::NONE;
    for (bit, modifier) in [
        (4, KeyModifiers::SHIFT),
        (8, KeyModifiers::ALT),
        (16, KeyModifiers::CONTROL),
    ] {
        if buttons & bit != 0 {
            modifiers.insert(modifier);
        }
    }
    Some(MouseEvent {
        kind,
        column: x.saturating_sub(1),
        row: y.saturating_sub(1),
        modifiers,
    })
}

/// Returns the text of a paste. Terminals and multiplexers that report keys as sequences do so with the line ends of a paste
/// (`CSI 13 u`, `CSI 106 ; 5 u`), which are line ends here.
pub(super) fn pasted(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut clean = String::with_capacity(text.len());
    let mut rest = text.as_ref();
    while let Some((before, behind)) = rest.split_once("\x1b[") {
        clean.push_str(before);
        let is_within = |c: char| matches!(c, '\x20'..='\x3f');
        let length = behind.find(|c| !is_within(c)).unwrap_or(behind.len());
        let (parameters, last) = behind.split_at(length);
        let letter = key_of_paste(parameters, last.as_bytes().first().copied());
        rest = match letter {
            Some(letter) => {
                clean.push(letter);
                last.get(1..).unwrap_or_default()
            }
            None => {
                clean.push_str("\x1b[");
                behind
            }
        };
    }
    clean + rest
}

/// Returns the character that a sequence within a paste stands for.
fn key_of_paste(parameters: &str, last: Option<u8>) -> Option<char> {
    let event = key(parameters, last.filter(|it| matches!(it, b'u' | b'~'))?)?;
    let is_ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
    match event.code {
        KeyCode::Enter => Some('\n'),
        KeyCode::Char('j' | 'm') if is_ctrl => Some('\n'),
        KeyCode::Tab => Some('\t'),
        KeyCode::Char('i') if is_ctrl => Some('\t'),
        KeyCode::Char(c) if !is_ctrl => Some(c),
        _ => None,
    }
}
