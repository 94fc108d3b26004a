//! Tests: bytes in, keys, pastes and answers out.

use super::*;
use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

fn read(bytes: &[u8]) -> Vec<Input> {
    let (mut parser, mut all) = (Parser::default(), Vec::new());
    parser.push(bytes, &mut all);
    parser.settle(&mut all);
    all
}

fn of(code: KeyCode, modifiers: KeyModifiers) -> Input {
    key(KeyEvent::new(code, modifiers))
}

const NONE: KeyModifiers = KeyModifiers::NONE;
const ALT: KeyModifiers = KeyModifiers::ALT;
const CTRL: KeyModifiers = KeyModifiers::CONTROL;
const SHIFT: KeyModifiers = KeyModifiers::SHIFT;

#[test]
fn keys_are_read_as_terminals_send_them() {
    for (bytes, code, modifiers) in [
        ("a", KeyCode::Char('a'), NONE),
        ("É", KeyCode::Char('É'), SHIFT),
        ("日", KeyCode::Char('日'), NONE),
        ("\r", KeyCode::Enter, NONE),
        ("\n", KeyCode::Char('j'), CTRL),
        ("\t", KeyCode::Tab, NONE),
        ("\x7f", KeyCode::Backspace, NONE),
        ("\x08", KeyCode::Char('h'), CTRL),
        ("\x03", KeyCode::Char('c'), CTRL),
        ("\x1d", KeyCode::Char('5'), CTRL),
        ("\0", KeyCode::Char(' '), CTRL),
        ("\x1b", KeyCode::Esc, NONE),
        ("\x1by", KeyCode::Char('y'), ALT),
        ("\x1b\r", KeyCode::Enter, ALT),
        ("\x1b]", KeyCode::Char(']'), ALT),
        ("\x1bP", KeyCode::Char('P'), ALT | SHIFT),
        ("\x1b[A", KeyCode::Up, NONE),
        ("\x1bOA", KeyCode::Up, NONE),
        ("\x1b[1;5C", KeyCode::Right, CTRL),
        ("\x1b\x1b[D", KeyCode::Left, ALT),
        ("\x1b[3~", KeyCode::Delete, NONE),
        ("\x1b[5;2~", KeyCode::PageUp, SHIFT),
        ("\x1b[Z", KeyCode::BackTab, SHIFT),
        ("\x1bOQ", KeyCode::F(2), NONE),
        ("\x1b[12~", KeyCode::F(2), NONE),
        ("\x1b[24~", KeyCode::F(12), NONE),
        ("\x1b[[B", KeyCode::F(2), NONE),
        ("\x1b[27u", KeyCode::Esc, NONE),
        ("\x1b[13;2u", KeyCode::Enter, SHIFT),
        ("\x1b[97;5u", KeyCode::Char('a'), CTRL),
        ("\x1b[121;3u", KeyCode::Char('y'), ALT),
        ("\x1b[57399u", KeyCode::Char('0'), NONE),
        ("\x1b[27;5;106~", KeyCode::Char('j'), CTRL),
        ("\x1b[9;2u", KeyCode::BackTab, SHIFT),
    ] {
        assert_eq!(read(bytes.as_bytes()), [of(code, modifiers)], "{bytes:?}");
    }
}

#[test]
fn the_mouse_and_the_focus_are_read() {
    let mouse = |kind, column, row| {
        Input::Event(Event::Mouse(MouseEvent {
            kind,
            column,
            row,
            modifiers: NONE,
        }))
    };
    let left = MouseButton::Left;
    for (bytes, input) in [
        ("\x1b[<0;3;5M", mouse(MouseEventKind::Down(left), 2, 4)),
        ("\x1b[<32;3;6M", mouse(MouseEventKind::Drag(left), 2, 5)),
        ("\x1b[<0;3;6m", mouse(MouseEventKind::Up(left), 2, 5)),
        ("\x1b[<64;1;1M", mouse(MouseEventKind::ScrollUp, 0, 0)),
        ("\x1b[<65;1;1M", mouse(MouseEventKind::ScrollDown, 0, 0)),
        ("\x1b[I", Input::Event(Event::FocusGained)),
        ("\x1b[O", Input::Event(Event::FocusLost)),
    ] {
        assert_eq!(read(bytes.as_bytes()), [input], "{bytes:?}");
    }
}

#[test]
fn answers_of_the_terminal_type_nothing() {
    for answer in [
        "\x1b[?62;22c",
        "\x1b[>0;276;0c",
        "\x1b[?1u",
        "\x1b[?2026;2$y",
        "\x1b[?997;1n",
        "\x1b[24;80R",
        "\x1b[8;24;80t",
        "\x1bP>|XTerm(390)\x1b\\",
        "\x1bP1$r0m\x1b\\",
        "\x1b]10;rgb:ff/ff/ff\x07",
        "\x1b]4;1;rgb:ff/00/00\x1b\\",
        "\x1b_Gi=1;OK\x1b\\",
        "\x1b^private\x1b\\",
        "\x1b[M !!",
        "\x1b[=1S",
    ] {
        assert_eq!(read(answer.as_bytes()), [], "{answer:?}");
        let typed = format!("a{answer}b");
        let letters = [of(KeyCode::Char('a'), NONE), of(KeyCode::Char('b'), NONE)];
        assert_eq!(read(typed.as_bytes()), letters, "{answer:?}");
    }
    let ground = read(b"\x1b]11;rgb:ff/ff/ff\x1b\\");
    assert_eq!(ground, [Input::Ground(true)]);
}

#[test]
fn input_is_the_same_wherever_its_bytes_are_cut() {
    let bytes = "né日\x1b[A\x1b[1;5C\x1bOQ\x1by\x1b[200~a\rb\x1b[20x\x1b[201~\x1bP>|x\x1b\\\
        \x1b]11;rgb:0/0/0\x07\x1b[?62c\x1b[<0;1;1M\x03z"
        .as_bytes();
    let whole = read(bytes);
    for cut in 0..bytes.len() {
        let (mut parser, mut all) = (Parser::default(), Vec::new());
        parser.push(&bytes[..cut], &mut all);
        parser.push(&bytes[cut..], &mut all);
        assert_eq!(all, whole, "cut at {cut}");
    }
    let (mut parser, mut all) = (Parser::default(), Vec::new());
    for byte in bytes {
        parser.push(&[*byte], &mut all);
    }
    assert_eq!(all, whole);
}

#[test]
fn an_escape_is_a_key_once_nothing_followed() {
    let (mut parser, mut all) = (Parser::default(), Vec::new());
    parser.push(b"\x1b", &mut all);
    assert!(all.is_empty() && parser.is_at_escape());
    parser.push(b"[", &mut all);
    assert!(all.is_empty() && parser.is_open() && !parser.is_at_escape());
    parser.push(b"B", &mut all);
    assert_eq!(all, [of(KeyCode::Down, NONE)]);
    assert_eq!(
        read(b"\x1b\x1b"),
        [of(KeyCode::Esc, NONE), of(KeyCode::Esc, NONE)]
    );
}

#[test]
fn line_ends_of_a_paste_that_come_as_keys_are_line_ends() {
    let bytes =
        b"\x1b[200~one\x1b[13utwo\x1b[106;5uthree\x1b[27;5;106~\x1b[9ufour\x1b[31mred\x1b[201~";
    let text = "one\ntwo\nthree\n\tfour\x1b[31mred".to_owned();
    assert_eq!(read(bytes), [Input::Event(Event::Paste(text))]);
}

#[test]
fn what_never_ends_is_bounded() {
    let (mut parser, mut all) = (Parser::default(), Vec::new());
    parser.push(b"\x1b]", &mut all);
    for _ in 0..10 {
        parser.push(&[b'x'; 1024], &mut all);
    }
    assert!(parser.pending.len() <= SEQUENCE_BYTES_MAX + 1024);
    parser.push(b"\x1b[200~", &mut all);
    assert!(parser.paste.is_none() || parser.pending.is_empty());
}
