//! Keys and pastes as the bytes that a program reads from its terminal, as xterm sends them.

use crate::text::clean;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Returns the bytes of a key, none if it has none. `is_application` says whether the program chose the other
/// sequences of arrows.
pub(super) fn bytes(key: &KeyEvent, is_application: bool) -> Vec<u8> {
    let has_alt = key.modifiers.contains(KeyModifiers::ALT);
    let plain = match key.code {
        KeyCode::Char(c) => of_character(c, key.modifiers),
        KeyCode::Enter => b"\r".to_vec(),
        KeyCode::Tab => b"\t".to_vec(),
        KeyCode::BackTab => b"\x1b[Z".to_vec(),
        KeyCode::Backspace => vec![0x7f],
        KeyCode::Esc => vec![0x1b],
        code => return of_function(code, key.modifiers, is_application),
    };
    match has_alt && !plain.is_empty() {
        true => [&b"\x1b"[..], &plain].concat(),
        false => plain,
    }
}

fn of_character(c: char, modifiers: KeyModifiers) -> Vec<u8> {
    if !modifiers.contains(KeyModifiers::CONTROL) {
        return c.to_string().into_bytes();
    }
    let code = match c.to_ascii_uppercase() {
        c @ '@'..='_' => u8::try_from(c).unwrap_or(0) & 0x1f,
        ' ' | '2' => 0,
        '3' => 0x1b,
        '4' => 0x1c,
        '5' => 0x1d,
        '6' => 0x1e,
        '7' | '/' => 0x1f,
        '8' | '?' => 0x7f,
        _ => return c.to_string().into_bytes(),
    };
    vec![code]
}

/// The sequences with a letter or a number, after which modifiers are given as a number.
fn of_function(code: KeyCode, modifiers: KeyModifiers, is_application: bool) -> Vec<u8> {
    let held = [
        (KeyModifiers::SHIFT, 1),
        (KeyModifiers::ALT, 2),
        (KeyModifiers::CONTROL, 4),
    ];
    let held = held.iter().filter(|it| modifiers.contains(it.0));
    let number = 1 + held.map(|it| it.1).sum::<u8>();
    let letter = |letter: char, is_own: bool| match (number, is_own) {
        (1, true) => format!("\x1bO{letter}"),
        (1, false) => format!("\x1b[{letter}"),
        (number, _) => format!("\x1b[1;{number}{letter}"),
    };
    let numbered = |which: u8| match number {
        1 => format!("\x1b[{which}~"),
        number => format!("\x1b[{which};{number}~"),
    };
    let sequence = match code {
        KeyCode::Up => letter('A', is_application),
        KeyCode::Down => letter('B', is_application),
        KeyCode::Right => letter('C', is_application),
        KeyCode::Left => letter('D', is_application),
        KeyCode::Home => letter('H', is_application),
        KeyCode::End => letter('F', is_application),
        KeyCode::Insert => numbered(2),
        KeyCode::Delete => numbered(3),
        KeyCode::PageUp => numbered(5),
        KeyCode::PageDown => numbered(6),
        KeyCode::F(1) => letter('P', true),
        KeyCode::F(2) => letter('Q', true),
        KeyCode::F(3) => letter('R', true),
        KeyCode::F(4) => letter('S', true),
        KeyCode::F(5) => numbered(15),
        KeyCode::F(at @ 6..=10) => numbered(at + 11),
        KeyCode::F(at @ 11..=12) => numbered(at + 12),
        _ => String::new(),
    };
    sequence.into_bytes()
}

/// Returns the bytes of a paste, in brackets if the program asked for them. No control character is in it that could
/// end them.
pub(super) fn pasted(text: &str, in_brackets: bool) -> Vec<u8> {
    let text = clean::typed(text).replace('\n', "\r");
    match in_brackets {
        true => format!("\x1b[200~{text}\x1b[201~").into_bytes(),
        false => text.into_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_what_xterm_sends() {
        let of = |code, modifiers| bytes(&KeyEvent::new(code, modifiers), false);
        let (none, ctrl, alt) = (KeyModifiers::NONE, KeyModifiers::CONTROL, KeyModifiers::ALT);
        assert_eq!(of(KeyCode::Char('é'), none), "é".as_bytes());
        assert_eq!(of(KeyCode::Char('c'), ctrl), [3]);
        assert_eq!(of(KeyCode::Char('x'), alt), b"\x1bx");
        assert_eq!(of(KeyCode::Up, none), b"\x1b[A");
        assert_eq!(of(KeyCode::Up, ctrl), b"\x1b[1;5A");
        assert_eq!(of(KeyCode::F(7), none), b"\x1b[18~");
        assert_eq!(of(KeyCode::F(12), none), b"\x1b[24~");
        assert_eq!(bytes(&KeyEvent::new(KeyCode::Up, none), true), b"\x1bOA");
    }

    #[test]
    fn a_paste_cannot_end_its_brackets() {
        let paste = pasted("a\nb\u{1b}[201~rm", true);
        assert_eq!(paste, b"\x1b[200~a\rb[201~rm\x1b[201~");
    }
}
