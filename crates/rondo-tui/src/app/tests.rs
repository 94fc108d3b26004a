//! Tests: keys and updates in, frames and effects out.

mod approvals;
mod preparing;

use super::*;
use crate::prompt::slash::Command;
use crossterm::event::{KeyCode, KeyModifiers};
use rondo_core::session::TicketId;
use rondo_runtime::secrets::KeyNames;
use rondo_runtime::service::{CellEvent, FileBefore, ReplacedFile};
use rondo_types::{
    AnswerValue, CallId, EventBody, Grant, GrantScope, InitEvent, Question, QuestionId,
    QuestionKind, SessionId, TurnEvent, TurnId,
};

const AREA: Rect = Rect::new(0, 0, 80, 24);

/// A screen, and a clock that is turned by hand.
struct Scene {
    app: App,
    now: u64,
}

impl Scene {
    fn new() -> Self {
        let app = App::new(AppOptions {
            options: Options::default(),
            model: "openai/test".to_owned(),
            profile: "default".to_owned(),
            context_max: Some(1_000),
            actor: "me".to_owned(),
            history: TypedLines::read(None, KeyNames::new(Vec::new())),
            secrets: Secrets::new(Vec::<String>::new()),
            run_mode: RunMode::Ask,
            added: crate::UserAdditions::default(),
            now: TimeMs(0),
        });
        let mut scene = Self { app, now: 0 };
        scene.shown();
        scene
    }

    fn key(&mut self, key: KeyEvent) -> Vec<Effect> {
        self.app.event(Event::Key(key), TimeMs(self.now))
    }

    fn press(&mut self, code: KeyCode) -> Vec<Effect> {
        self.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    fn types(&mut self, text: &str) -> Vec<Effect> {
        let keys = text.chars().map(KeyCode::Char);
        keys.flat_map(|it| self.press(it)).collect()
    }

    fn alt(&mut self, letter: char) -> Vec<Effect> {
        self.key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::ALT))
    }

    fn ctrl(&mut self, letter: char) -> Vec<Effect> {
        self.key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL))
    }

    fn happens(&mut self, body: EventBody) {
        let event = Box::new(TurnEvent {
            session: SessionId::new("s"),
            turn: TurnId::new("t"),
            seq: 0,
            at: TimeMs(self.now),
            body,
        });
        self.app
            .update(UpdateBody::Turn { event }, TimeMs(self.now));
    }

    /// Draws a frame, and returns what stands in it.
    fn shown(&mut self) -> String {
        let drawing = self.app.draw(AREA);
        self.app.was_shown(TimeMs(self.now));
        let cells = drawing.buffer.content().chunks(usize::from(AREA.width));
        let lines = cells.map(|row| row.iter().map(ratatui_core::buffer::Cell::symbol).collect());
        lines.collect::<Vec<String>>().join("\n")
    }

    /// Draws a frame, and lets the time pass until keys answer.
    fn waits(&mut self) {
        self.shown();
        self.now += 300;
        self.app.tick(TimeMs(self.now));
    }

    /// A call asks whether it may run, in these words.
    fn asks(&mut self, prompt: &str) {
        self.happens(EventBody::Parked {
            questions: vec![question("c", prompt)],
        });
    }
}

fn question(id: &str, prompt: &str) -> Question {
    Question {
        id: QuestionId(id.to_owned()),
        call: Some(CallId::new(id)),
        child: None,
        kind: QuestionKind::Approval,
        prompt: prompt.to_owned(),
        hash: format!("hash of {id}"),
        expires: None,
        subject: rondo_types::QuestionSubject::default(),
        offers: vec![Grant {
            scope: GrantScope::Commands {
                tool: "exec".to_owned(),
                prefix: vec!["touch".to_owned()],
            },
            despite_outside_text: false,
        }],
        reasons: Vec::new(),
    }
}

fn answers(effects: &[Effect]) -> Vec<(AnswerValue, Option<Grant>, String)> {
    let answers = effects.iter().filter_map(|it| match it {
        Effect::Answer(answer) => Some(answer.clone()),
        _ => None,
    });
    answers.map(|it| (it.value, it.remember, it.hash)).collect()
}

#[test]
fn a_warning_is_shown_in_the_conversation_at_each_turn() {
    let mut scene = Scene::new();
    let warning = || EventBody::Warning {
        text: "`/x` must be reviewed".to_owned(),
    };
    scene.happens(warning());
    scene.happens(EventBody::StepStarted { step: 1 });
    scene.happens(warning());
    let shown = scene.shown();
    assert_eq!(shown.matches("must be reviewed").count(), 2, "{shown}");
}

#[test]
fn while_a_turn_runs_enter_steers_and_tab_queues_and_what_waits_comes_back() {
    let mut scene = Scene::new();
    scene.happens(EventBody::StepStarted { step: 1 });
    scene.app.story.is_in_turn = true;
    scene.types("left");
    let submitted = |text: &str, delivery| {
        vec![Effect::Submit {
            text: text.to_owned(),
            attached: Vec::new(),
            delivery,
        }]
    };
    assert_eq!(
        scene.press(KeyCode::Enter),
        submitted("left", Delivery::Steer)
    );
    scene.types("later");
    assert_eq!(
        scene.press(KeyCode::Tab),
        submitted("later", Delivery::Queue)
    );
    let ticket = TicketId("k".to_owned());
    scene.app.waits(PendingMessage {
        ticket: ticket.clone(),
        text: "later".to_owned(),
        attached: Vec::new(),
        delivery: Delivery::Queue,
    });
    assert!(scene.shown().contains("queued: later"));
    assert_eq!(scene.press(KeyCode::Up), [Effect::Withdraw(ticket)]);
    let shown = scene.shown();
    assert!(
        shown.contains("│ later") && !shown.contains("queued"),
        "{shown}"
    );
}

#[test]
fn shift_tab_changes_what_runs_unasked_and_f2_what_is_typed() {
    let mut scene = Scene::new();
    let modes = [RunMode::Auto, RunMode::Plan, RunMode::Ask];
    for mode in modes {
        assert_eq!(scene.press(KeyCode::BackTab), [Effect::RunMode(mode)]);
        assert!(scene.shown().contains(&format!("agent · {}", mode.name())));
    }
    scene.press(KeyCode::F(2));
    scene.types("ls");
    assert!(scene.shown().contains("shell · ask"));
    let own = |text: &str, is_shared| Effect::Own {
        cell: rondo_runtime::service::Cell::Shell(text.to_owned()),
        is_shared,
    };
    assert_eq!(scene.press(KeyCode::Enter), [own("ls", false)]);
    scene.press(KeyCode::F(2));
    scene.press(KeyCode::F(2));
    scene.types("!pwd");
    assert_eq!(scene.press(KeyCode::Enter), [own("pwd", true)]);
}

#[test]
fn a_newline_is_typed_by_each_of_its_keys() {
    let mut scene = Scene::new();
    scene.types("a");
    scene.key(KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT));
    scene.types("b");
    scene.ctrl('j');
    scene.types("c\\");
    assert!(scene.press(KeyCode::Enter).is_empty());
    scene.types("d");
    assert_eq!(scene.app.editor.text(), "a\nb\nc\nd");
}

#[test]
fn commands_and_files_are_completed_and_history_is_recalled() {
    let mut scene = Scene::new();
    scene.types("/comp");
    assert!(scene.shown().contains("/compact"));
    scene.press(KeyCode::Tab);
    assert_eq!(scene.app.editor.text(), "/compact ");
    assert_eq!(
        scene.press(KeyCode::Enter),
        [Effect::command(Command::Compact)]
    );
    assert_eq!(scene.types("see @mod"), [Effect::Files]);
    scene
        .app
        .knows_files(vec!["a.txt".to_owned(), "src/model.rs".to_owned()]);
    assert!(scene.shown().contains("@src/model.rs"));
    scene.press(KeyCode::Tab);
    assert_eq!(scene.app.editor.text(), "see @src/model.rs ");
    scene.ctrl('c');
    scene.press(KeyCode::Up);
    assert_eq!(scene.app.editor.text(), "/compact ".trim_end());
    scene.press(KeyCode::Down);
    assert!(scene.app.editor.is_empty());
}

#[test]
fn a_removed_session_comes_back_until_the_panel_is_closed() {
    use rondo_core::ports::Seq;
    use rondo_core::session_store::{SessionInfo, SessionState};
    use rondo_runtime::service::KeptSession;
    let kept = |id: &str| KeptSession {
        info: SessionInfo {
            id: SessionId::new(id),
            created: TimeMs(0),
            updated: TimeMs(0),
            head: Seq(1),
            parent: None,
            title: format!("title of {id}"),
            directory: String::new(),
            turns: 2,
            state: SessionState::Done,
            imported: false,
            lost_end: false,
        },
        excerpt: None,
    };
    let mut scene = Scene::new();
    assert_eq!(scene.alt('s'), [Effect::List(String::new())]);
    scene.app.found("", vec![kept("one"), kept("two")]);
    assert!(scene.shown().contains("title of two · 2 turns"));
    scene.press(KeyCode::Down);
    scene.ctrl('d');
    scene.ctrl('d');
    assert!(scene.press(KeyCode::Esc).is_empty());
    scene.alt('s');
    scene.app.found("", vec![kept("one"), kept("two")]);
    scene.ctrl('d');
    let is_gone = |line: &str| line.contains("✗ ") && line.contains("title of one");
    assert!(scene.shown().lines().any(is_gone), "{}", scene.shown());
    assert!(scene.press(KeyCode::Enter).is_empty());
    scene.press(KeyCode::Down);
    let gone = Effect::Remove(SessionId::new("one"));
    assert_eq!(
        scene.press(KeyCode::Enter),
        [
            gone,
            Effect::Command {
                command: Command::Resume,
                rest: "two".to_owned()
            }
        ]
    );
}

#[test]
fn an_idle_screen_moves_not_and_a_thinking_one_does_unless_nobody_looks() {
    let mut scene = Scene::new();
    assert!(!scene.app.moves());
    scene.happens(EventBody::StepStarted { step: 1 });
    assert!(scene.app.moves());
    scene.app.event(Event::FocusLost, TimeMs(0));
    assert!(!scene.app.moves());
    scene.app.event(Event::FocusGained, TimeMs(0));
    scene.asks("run x?");
    assert!(!scene.app.moves());
}

#[test]
fn a_notch_of_the_wheel_scrolls_as_far_on_every_terminal() {
    use crossterm::event::{MouseEvent, MouseEventKind};
    for events in [1, 3, 9] {
        let mut scene = Scene::new();
        for at in 0..100 {
            scene.app.note(&format!("note {at}"));
        }
        scene.shown();
        scene.now += 1_000;
        for _ in 0..events {
            let mouse = MouseEvent {
                kind: MouseEventKind::ScrollUp,
                column: 1,
                row: 1,
                modifiers: KeyModifiers::NONE,
            };
            scene.app.event(Event::Mouse(mouse), TimeMs(scene.now));
        }
        let before: Vec<usize> = scene.app.drawn.places.iter().map(|it| it.entry).collect();
        scene.shown();
        let after: Vec<usize> = scene.app.drawn.places.iter().map(|it| it.entry).collect();
        // Three rows and the one that says that there is more below.
        assert!(
            after[0] + 3 >= before[0] && after[0] < before[0],
            "{events}"
        );
    }
}

#[test]
fn nothing_that_is_drawn_breaks_at_any_size() {
    let mut scene = Scene::new();
    scene.happens(EventBody::TextDelta {
        text: "| a | b |\n|---|---|\n| 日本 | x |\n\n> q\n\n- l\n".to_owned(),
    });
    scene.asks(&"word ".repeat(100));
    for layer in 0..4 {
        match layer {
            1 => drop(scene.types("?")),
            2 => drop(scene.alt('y')),
            3 => drop(scene.alt('s')),
            _ => {}
        }
        for width in 1..60 {
            for height in 1..20 {
                scene.app.draw(Rect::new(0, 0, width, height));
            }
        }
        scene.press(KeyCode::Esc);
    }
}

#[test]
fn nothing_of_what_lies_below_a_panel_shows_through_it() {
    let theme = Theme::of(crate::options::Colours::Sixteen);
    let mut buffer = ratatui_core::buffer::Buffer::empty(AREA);
    buffer.set_style(AREA, theme.selected);
    let rows = [crate::text::Row::of("a row", theme.text)];
    let top = draw::panel(&mut buffer, AREA, &theme.focus, "title", &rows);
    for y in top..AREA.bottom() {
        for x in 0..AREA.width {
            let style = buffer.cell((x, y)).unwrap().style();
            let reversed = ratatui_core::style::Modifier::REVERSED;
            assert!(!style.add_modifier.contains(reversed), "{x}, {y}");
        }
    }
}

fn turn_of(story: &mut Story, number: usize) {
    let turn = TurnId::new(format!("t-{number}"));
    let message = rondo_types::Message::user(format!("question {number}"));
    story.update(UpdateBody::Asked {
        turn,
        message: message.into(),
    });
}

#[test]
fn earlier_turns_are_read_once_somebody_looks_for_them_and_what_is_in_view_stays() {
    let mut scene = Scene::new();
    for number in 40..80 {
        turn_of(&mut scene.app.story, number);
    }
    scene.app.passed(40);
    scene.shown();
    assert_eq!(scene.app.wants_earlier(), None);
    scene.press(KeyCode::PageUp);
    while scene.app.wants_earlier() != Some(40) {
        assert!(!scene.shown().contains("question 40 "), "{}", scene.shown());
        scene.press(KeyCode::PageUp);
        scene.shown();
    }
    // They are asked for once.
    assert_eq!(scene.app.wants_earlier(), None);
    let before = scene.shown();
    assert!(before.contains("↑ earlier turns are read"), "{before}");
    let mut earlier = Box::<Story>::default();
    for number in 0..40 {
        turn_of(&mut earlier, number);
    }
    assert!(scene.app.take_earlier(Some(earlier)).is_empty());
    let after = scene.shown();
    let first = |shown: &str| {
        shown
            .lines()
            .find(|it| it.contains("question"))
            .map(str::to_owned)
    };
    assert_eq!(first(&after), first(&before));
    scene.key(KeyEvent::new(KeyCode::Home, KeyModifiers::CONTROL));
    assert!(scene.shown().contains("question 0 "), "{}", scene.shown());
    scene.app.passed(40);
    assert_eq!(scene.app.wants_earlier(), None);
}

#[test]
fn words_are_found_in_turns_that_were_not_read_at_first() {
    let mut scene = Scene::new();
    turn_of(&mut scene.app.story, 7);
    scene.app.passed(1);
    scene.ctrl('f');
    scene.types("question 3");
    assert!(scene.shown().contains("nothing further"));
    assert_eq!(scene.app.wants_earlier(), Some(1));
    let mut earlier = Box::<Story>::default();
    turn_of(&mut earlier, 3);
    scene.app.take_earlier(Some(earlier));
    assert!(
        !scene.shown().contains("nothing further"),
        "{}",
        scene.shown()
    );
}

#[test]
fn the_wheel_over_the_pane_scrolls_it_and_is_arrows_to_a_program_with_the_whole_screen() {
    use crossterm::event::{MouseEvent, MouseEventKind};
    let mut scene = Scene::new();
    scene.ctrl(']');
    scene.app.shell_began();
    let lines: String = (0..60).map(|it| format!("line {it}.\r\n")).collect();
    scene.app.shell_wrote(lines.as_bytes());
    assert!(scene.shown().contains("line 59."));
    let turns = |scene: &mut Scene| {
        scene.now += 1_000;
        let mouse = MouseEvent {
            kind: MouseEventKind::ScrollUp,
            column: 5,
            row: 14,
            modifiers: KeyModifiers::NONE,
        };
        scene.app.event(Event::Mouse(mouse), TimeMs(scene.now))
    };
    assert!(turns(&mut scene).is_empty());
    let shown = scene.shown();
    assert!(
        shown.contains("line 56.") && !shown.contains("line 58."),
        "{shown}"
    );
    scene.app.shell_wrote(b"\x1b[?1049h");
    assert_eq!(turns(&mut scene), [Effect::Type(b"\x1b[A".repeat(3))]);
}

#[test]
fn tab_completes_a_word_of_the_pane_as_far_as_all_names_agree() {
    let mut scene = Scene::new();
    scene.ctrl(']');
    scene.types("cat so");
    let effects = scene.press(KeyCode::Tab);
    let [Effect::CompleteInPane(asked)] = &effects[..] else {
        panic!("{effects:?}");
    };
    assert_eq!((asked.word.as_str(), asked.is_command), ("so", false));
    let names = ["sour cream".to_owned(), "source/".to_owned()];
    scene.app.completes_in_pane(asked, &names);
    assert!(scene.shown().contains("$ cat sour"), "{}", scene.shown());
    let asked = PaneWord {
        word: "sour".to_owned(),
        ..asked.clone()
    };
    scene.app.completes_in_pane(&asked, &names[..1]);
    assert!(
        scene.shown().contains("$ cat sour\\ cream "),
        "{}",
        scene.shown()
    );
    // What was typed meanwhile is not completed.
    scene.types("x");
    scene.app.completes_in_pane(&asked, &names);
    assert!(
        scene.shown().contains("sour\\ cream x"),
        "{}",
        scene.shown()
    );
}

#[test]
fn who_answers_is_as_in_the_latest_turn_unless_that_was_before_it_was_chosen() {
    let mut scene = Scene::new();
    scene.now = 10;
    let began = |scene: &mut Scene, turn: &str, at: u64| {
        let limits = rondo_core::profile::builtin("default").unwrap().limits;
        scene.app.story.update(UpdateBody::Turn {
            event: Box::new(TurnEvent {
                session: SessionId::new("s"),
                turn: TurnId::new(turn),
                seq: 0,
                at: TimeMs(at),
                body: EventBody::Init(Box::new(InitEvent {
                    schema_version: 1,
                    model: "local/small".to_owned(),
                    fallbacks: Vec::new(),
                    profile: "default".to_owned(),
                    limits,
                    tools: Default::default(),
                })),
            }),
        });
        scene.app.story.is_in_turn = false;
    };
    began(&mut scene, "one", 10);
    assert!(scene.shown().contains(" local/small · "));
    scene.ctrl('l');
    scene
        .app
        .set_answers("openai/next".to_owned(), "default".to_owned(), None);
    began(&mut scene, "two", 9);
    assert!(scene.shown().contains(" openai/next · "));
}

#[test]
fn a_program_of_the_conversation_that_takes_the_whole_screen_gets_the_keys_until_it_ends() {
    let mut scene = Scene::new();
    scene.types("!vim");
    scene.press(KeyCode::Enter);
    scene.app.shell_began();
    let cell = |event| UpdateBody::Cell { event };
    scene.app.shell_wrote(b"\x1b[?1049h\x1b[Hthe file");
    let debris = CellEvent::Output {
        text: "debris".to_owned(),
    };
    scene.app.update(cell(debris), TimeMs(0));
    let shown = scene.shown();
    assert!(
        shown.contains("the file") && !shown.contains("debris"),
        "{shown}"
    );
    assert_eq!(scene.types("i"), [Effect::Type(b"i".to_vec())]);
    scene.app.shell_wrote(b"\x1b[?1049l");
    scene.app.shell_ended(b"");
    let shown = scene.shown();
    assert!(
        !shown.contains("the file") && shown.contains("agent · ask"),
        "{shown}"
    );
    scene.types("hello");
    assert!(scene.shown().contains("│ hello "));
}

#[test]
fn the_key_for_the_model_opens_a_list_of_which_one_is_chosen() {
    let mut scene = Scene::new();
    assert_eq!(scene.alt('p'), [Effect::Models]);
    let models = ["local/qwen", "openai/gpt-5", "openai/gpt-5-mini"];
    scene.app.choose_model(models.map(str::to_owned).into());
    scene.types("mini");
    let shown = scene.shown();
    assert!(
        shown.contains("▸ openai/gpt-5-mini") && !shown.contains("qwen"),
        "{shown}"
    );
    let chosen = Effect::Command {
        command: Command::Model,
        rest: "openai/gpt-5-mini".to_owned(),
    };
    assert_eq!(scene.press(KeyCode::Enter), [chosen]);
}

#[test]
fn the_status_says_where_the_session_works_where_there_is_room() {
    let mut scene = Scene::new();
    scene.app.set_place("~/notes", Some("main"));
    let shown = scene.shown();
    assert!(
        shown.contains(" openai/test · default · ~/notes (main) "),
        "{shown}"
    );
    assert!(shown.contains("? help"), "{shown}");
    scene.app.set_place(&"x".repeat(80), None);
    assert!(scene.shown().contains(" openai/test · default  "));
}

#[test]
fn a_person_is_wanted_only_while_they_look_elsewhere() {
    let mut scene = Scene::new();
    scene.asks("run x?");
    assert_eq!(scene.app.take_notice(), None);
    scene.app.event(Event::FocusLost, TimeMs(0));
    scene.happens(EventBody::Parked {
        questions: vec![question("d", "run y?")],
    });
    assert_eq!(scene.app.take_notice(), Some(Notice::Asks));
    assert_eq!(scene.app.take_notice(), None);
}

#[test]
fn a_message_that_is_typed_over_the_to_do_list_is_whole() {
    let mut scene = Scene::new();
    let todo = crate::prompt::reply::Panel::Todo;
    scene.app.open_panel(todo, String::new());
    scene.types("/cop");
    assert_eq!(scene.app.editor.text(), "/cop");
}

#[test]
fn enter_begins_another_line_of_a_command_or_a_cell_that_is_not_whole() {
    let mut scene = Scene::new();
    for (typed, rest, language) in [
        ("!echo \"abc", "def\"", Mode::Agent),
        ("for i in 1 2; do", "echo $i; done", Mode::Shell),
        ("if True:", "", Mode::Python),
    ] {
        scene.app.set_language(language);
        scene.types(typed);
        assert_eq!(scene.press(KeyCode::Enter), [], "{typed}");
        assert_eq!(scene.app.editor.text(), format!("{typed}\n"));
        scene.types(rest);
        assert_eq!(
            scene.press(KeyCode::Enter).len(),
            usize::from(!rest.is_empty())
        );
        scene.app.editor.take();
    }
}
