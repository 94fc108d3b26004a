//! Tests: the behavior of a session with any order of inputs, losses and restarts.

mod answers;
mod cells;

use super::*;
use rondo_testkit::Dice;
use rondo_types::{CallId, Message, TimeMs, TurnId};
use std::collections::{HashSet, VecDeque};

const NOW: TimeMs = TimeMs(1_000);

fn message(ticket: &str, delivery: Delivery) -> QueuedMessage {
    QueuedMessage {
        ticket: TicketId(ticket.to_owned()),
        message: Message::user(ticket),
        delivery,
        actor: "me".to_owned(),
    }
}

fn queue(ticket: &str) -> Input {
    Input::Submitted(message(ticket, Delivery::Queue))
}

fn steer(ticket: &str) -> Input {
    Input::Submitted(message(ticket, Delivery::Steer))
}

fn owned(open: Open, waiting: &[&str]) -> Input {
    let waiting = waiting.iter().map(|name| message(name, Delivery::Queue));
    Input::Taken {
        open,
        waiting: waiting.collect(),
    }
}

fn ticket(name: &str) -> TicketId {
    TicketId(name.to_owned())
}

fn turn() -> TurnId {
    TurnId::new("t")
}

fn question(name: &str) -> Question {
    Question {
        id: QuestionId(name.to_owned()),
        call: Some(CallId::new(name)),
        child: None,
        kind: QuestionKind::Approval,
        prompt: format!("may `{name}` run?"),
        hash: format!("hash of {name}"),
        expires: Some(TimeMs(2_000)),
        offers: Vec::new(),
        reasons: Vec::new(),
        subject: rondo_types::QuestionSubject::default(),
    }
}

fn approve(name: &str) -> Answer {
    Answer {
        question: QuestionId(name.to_owned()),
        hash: format!("hash of {name}"),
        actor: "me".to_owned(),
        value: AnswerValue::Approve,
        remember: None,
    }
}

/// A session's last turn, if that has no recorded end, and what it waits for.
type Open = Option<(TurnId, Vec<Question>)>;

fn cut_off() -> Open {
    Some((turn(), Vec::new()))
}

fn parked(names: &[&str]) -> Open {
    Some((turn(), names.iter().map(|name| question(name)).collect()))
}

/// A machine that owns an idle session, in which the first message runs.
fn running() -> SessionMachine {
    let mut machine = SessionMachine::new();
    machine.handle(NOW, queue("first"));
    machine.handle(NOW, owned(None, &["first"]));
    machine
}

/// Returns the actions that are not told to listeners.
fn done(machine: &mut SessionMachine, input: Input) -> Vec<Action> {
    let actions = machine.handle(NOW, input).into_iter();
    actions
        .filter(|it| !matches!(it, Action::Tell(_)))
        .collect()
}

fn start(run: u64, name: &str, delivery: Delivery) -> Action {
    Action::Start {
        run: Run(run),
        message: Box::new(message(name, delivery)),
    }
}

#[test]
fn a_message_that_steers_its_own_turn_alone_waits_while_another_ones_runs() {
    let own = |ticket: &str, actor: &str| {
        Input::Submitted(QueuedMessage {
            actor: actor.to_owned(),
            ..message(ticket, Delivery::SteerOwn)
        })
    };
    let mut machine = running();
    let joined = done(&mut machine, own("a", "me"));
    assert!(matches!(joined[..], [Action::Steer { .. }]), "{joined:?}");
    assert_eq!(done(&mut machine, own("b", "someone else")), []);

    let mut machine = SessionMachine::new();
    machine.handle(NOW, queue("first"));
    machine.handle(NOW, owned(cut_off(), &[]));
    assert_eq!(done(&mut machine, own("c", "me")), []);
}

#[test]
fn a_message_takes_the_session_begins_a_turn_and_the_session_is_let_go_after_it() {
    let mut machine = SessionMachine::new();
    assert!(machine.is_at_rest());
    assert_eq!(done(&mut machine, queue("a")), [Action::Take]);
    let taken = done(&mut machine, owned(None, &["a"]));
    assert_eq!(taken, [start(1, "a", Delivery::Queue)]);
    let ended = machine.handle(NOW, Input::TurnEnded { run: Run(1) });
    assert_eq!(ended, [Action::Release, Action::Tell(SessionEvent::Idle)]);
    assert!(machine.is_at_rest());
}

#[test]
fn messages_wait_for_the_turn_that_runs_and_begin_theirs_in_order() {
    let mut machine = running();
    for (ahead, name) in ["a", "b"].into_iter().enumerate() {
        let ahead = u32::try_from(ahead).unwrap();
        let told = SessionEvent::Queued {
            ticket: ticket(name),
            ahead,
        };
        assert_eq!(machine.handle(NOW, queue(name)), [Action::Tell(told)]);
    }
    let ended = done(&mut machine, Input::TurnEnded { run: Run(1) });
    assert_eq!(ended, [start(2, "a", Delivery::Queue)]);
    let ended = done(&mut machine, Input::TurnEnded { run: Run(2) });
    assert_eq!(ended, [start(3, "b", Delivery::Queue)]);
}

#[test]
fn a_message_that_waits_can_be_changed_and_taken_back_until_its_turn_begins() {
    let mut machine = running();
    machine.handle(NOW, queue("a"));
    machine.handle(NOW, queue("b"));
    let edited = Input::Edited {
        ticket: ticket("b"),
        message: Message::user("something else"),
    };
    assert!(done(&mut machine, edited).is_empty());
    let withdrawn = Input::Withdrawn {
        ticket: ticket("a"),
    };
    assert!(done(&mut machine, withdrawn.clone()).is_empty());
    let refused = Action::Refuse(Refusal::NotWaiting {
        ticket: ticket("a"),
    });
    assert_eq!(done(&mut machine, withdrawn), [refused]);
    let ended = done(&mut machine, Input::TurnEnded { run: Run(1) });
    let expected = QueuedMessage {
        message: Message::user("something else"),
        ..message("b", Delivery::Queue)
    };
    let start = Action::Start {
        run: Run(2),
        message: Box::new(expected),
    };
    assert_eq!(ended, [start]);
    let late = Input::Withdrawn {
        ticket: ticket("b"),
    };
    let refused = Action::Refuse(Refusal::NotWaiting {
        ticket: ticket("b"),
    });
    assert_eq!(done(&mut machine, late), [refused]);
}

#[test]
fn steering_joins_the_turn_that_runs_and_what_it_does_not_take_begins_its_own() {
    let mut machine = running();
    let handed = |name: &str| Action::Steer {
        run: Run(1),
        message: Box::new(message(name, Delivery::Steer)),
    };
    assert_eq!(done(&mut machine, steer("a")), [handed("a")]);
    machine.handle(NOW, queue("b"));
    assert_eq!(done(&mut machine, steer("c")), [handed("c")]);
    let steered = Input::Steered {
        run: Run(1),
        ticket: ticket("a"),
    };
    let told = SessionEvent::Delivered {
        ticket: ticket("a"),
    };
    assert_eq!(machine.handle(NOW, steered), [Action::Tell(told)]);
    let ended = done(&mut machine, Input::TurnEnded { run: Run(1) });
    assert_eq!(ended, [start(2, "b", Delivery::Queue)]);
    let ended = done(&mut machine, Input::TurnEnded { run: Run(2) });
    assert_eq!(ended, [start(3, "c", Delivery::Steer)]);
}

#[test]
fn steering_that_the_turn_did_not_take_can_be_changed_and_taken_back() {
    let mut machine = running();
    machine.handle(NOW, steer("a"));
    machine.handle(NOW, steer("b"));
    let edited = Input::Edited {
        ticket: ticket("a"),
        message: Message::user("something else"),
    };
    let told = SessionEvent::Edited {
        ticket: ticket("a"),
    };
    assert_eq!(machine.handle(NOW, edited), [Action::Tell(told)]);
    let withdrawn = Input::Withdrawn {
        ticket: ticket("b"),
    };
    let told = SessionEvent::Withdrawn {
        ticket: ticket("b"),
    };
    assert_eq!(machine.handle(NOW, withdrawn), [Action::Tell(told)]);
    let expected = QueuedMessage {
        message: Message::user("something else"),
        ..message("a", Delivery::Steer)
    };
    let start = Action::Start {
        run: Run(2),
        message: Box::new(expected),
    };
    let ended = done(&mut machine, Input::TurnEnded { run: Run(1) });
    assert_eq!(ended, [start]);
}

#[test]
fn steering_of_a_turn_that_is_being_stopped_waits() {
    let mut machine = running();
    let stopped = done(&mut machine, Input::Cancel);
    assert_eq!(stopped, [Action::CancelTurn { run: Run(1) }]);
    assert!(done(&mut machine, Input::Cancel).is_empty());
    assert!(done(&mut machine, steer("a")).is_empty());
    let ended = done(&mut machine, Input::TurnEnded { run: Run(1) });
    assert_eq!(ended, [start(2, "a", Delivery::Steer)]);
}

#[test]
fn a_turn_that_was_cut_off_goes_on_before_anything_new_begins() {
    let mut machine = SessionMachine::new();
    machine.handle(NOW, queue("a"));
    let taken = done(&mut machine, owned(cut_off(), &["a"]));
    let resume = Action::Resume {
        run: Run(1),
        turn: turn(),
        answers: Vec::new(),
    };
    assert_eq!(taken, [resume]);
    let ended = done(&mut machine, Input::TurnEnded { run: Run(1) });
    assert_eq!(ended, [start(2, "a", Delivery::Queue)]);
}

#[test]
fn a_parked_turn_holds_nothing_and_goes_on_once_every_question_is_answered() {
    let mut machine = running();
    machine.handle(NOW, queue("next"));
    let questions = vec![question("q1"), question("q2")];
    let input = Input::Parked {
        run: Run(1),
        turn: turn(),
        questions,
    };
    assert_eq!(done(&mut machine, input), [Action::Release]);
    assert!(machine.is_at_rest());

    assert_eq!(
        done(&mut machine, Input::Answered(approve("q1"))),
        [Action::Take]
    );
    let taken = done(&mut machine, owned(parked(&["q1", "q2"]), &[]));
    assert_eq!(taken, [Action::Release]);

    // Both are in the mailbox.
    machine.handle(NOW, Input::Answered(approve("q1")));
    machine.handle(NOW, Input::Answered(approve("q2")));
    let resume = Action::Resume {
        run: Run(2),
        turn: turn(),
        answers: vec![approve("q1"), approve("q2")],
    };
    let taken = done(&mut machine, owned(parked(&["q1", "q2"]), &["next"]));
    assert_eq!(taken, [resume]);
}

#[test]
fn a_question_that_expired_is_denied_and_the_turn_goes_on() {
    let mut machine = SessionMachine::new();
    assert_eq!(done(&mut machine, Input::Due), [Action::Take]);
    let early = machine.handle(TimeMs(1_999), owned(parked(&["q"]), &[]));
    assert_eq!(early, [Action::Release]);
    machine.handle(NOW, Input::Due);
    let due = machine.handle(TimeMs(2_000), owned(parked(&["q"]), &[]));
    let Some(Action::Resume { answers, .. }) = due.last() else {
        panic!("{due:?}");
    };
    let reason = "the question expired without an answer".to_owned();
    assert_eq!(
        (answers[0].actor.as_str(), &answers[0].value),
        ("expiry", &AnswerValue::Deny { reason })
    );
}

#[test]
fn stopping_a_parked_turn_denies_what_it_asks_and_ends_it() {
    let mut machine = SessionMachine::new();
    assert_eq!(done(&mut machine, Input::Cancel), [Action::Take]);
    let taken = done(&mut machine, owned(parked(&["q"]), &[]));
    let denied = Answer {
        actor: "stop".to_owned(),
        value: AnswerValue::Deny {
            reason: "the turn was stopped".to_owned(),
        },
        ..approve("q")
    };
    let resume = Action::Resume {
        run: Run(1),
        turn: turn(),
        answers: vec![denied.clone()],
    };
    let stop = Action::CancelTurn { run: Run(1) };
    assert_eq!(taken, [resume, stop]);
}

#[test]
fn a_turn_that_parks_while_it_is_stopped_is_ended_all_the_same() {
    let mut machine = running();
    machine.handle(NOW, Input::Cancel);
    let input = Input::Parked {
        run: Run(1),
        turn: turn(),
        questions: vec![question("q")],
    };
    let actions = done(&mut machine, input);
    assert!(
        matches!(
            actions[..],
            [
                Action::Resume { run: Run(2), .. },
                Action::CancelTurn { run: Run(2) }
            ]
        ),
        "{actions:?}"
    );
}

#[test]
fn stopping_where_nothing_runs_stops_nothing_that_comes_later() {
    let mut machine = SessionMachine::new();
    machine.handle(NOW, Input::Cancel);
    machine.handle(NOW, queue("a"));
    let taken = done(&mut machine, owned(None, &["a"]));
    assert_eq!(taken, [start(1, "a", Delivery::Queue)]);
}

#[test]
fn a_session_that_another_process_took_is_given_up_and_a_late_end_means_nothing() {
    let mut machine = running();
    machine.handle(NOW, queue("a"));
    let lost = machine.handle(NOW, Input::OwnerLost);
    assert_eq!(
        lost,
        [
            Action::CancelTurn { run: Run(1) },
            Action::Tell(SessionEvent::Lost)
        ]
    );
    machine.handle(NOW, queue("b"));
    let taken = done(&mut machine, owned(None, &["b"]));
    assert_eq!(taken, [start(2, "b", Delivery::Queue)]);
    assert!(done(&mut machine, Input::TurnEnded { run: Run(1) }).is_empty());
    assert!(!machine.is_at_rest());
}

#[test]
fn a_drained_session_ends_its_turn_and_begins_no_other() {
    let mut machine = running();
    machine.handle(NOW, queue("a"));
    assert!(done(&mut machine, Input::Drain).is_empty());
    let ended = done(&mut machine, Input::TurnEnded { run: Run(1) });
    assert_eq!(ended, [Action::Release]);
    assert!(done(&mut machine, queue("b")).is_empty());
    assert!(machine.is_at_rest());
}

#[test]
fn more_messages_than_fit_are_refused_and_those_that_are_known_count_once() {
    let mut machine = running();
    for index in 0..QUEUED_MAX {
        machine.handle(NOW, queue(&index.to_string()));
    }
    assert!(machine.handle(NOW, queue("0")).is_empty());
    let refused = Action::Refuse(Refusal::QueueFull {
        ticket: ticket("more"),
        max: QUEUED_MAX,
    });
    assert_eq!(done(&mut machine, queue("more")), [refused]);
}

/// Durable state of a session, and two processes that want it. A process that crashes begins with a new
/// machine.
struct World {
    dice: Dice,
    machines: [SessionMachine; 2],
    owner: Option<usize>,
    /// Runs that were begun and did not end, with their process.
    runs: Vec<(usize, Run)>,
    /// Rows of the mailbox, oldest first.
    rows: VecDeque<QueuedMessage>,
    /// Answers in the mailbox, oldest first.
    answers: Vec<Answer>,
    open: Open,
    now: u64,
    submitted: u32,
    delivered: Vec<TicketId>,
    withdrawn: HashSet<TicketId>,
    turns: u32,
    /// The message of the turn that runs, until something is recorded of it.
    begun_by: Option<QueuedMessage>,
    /// The process that runs a person's cell.
    cell: Option<usize>,
}

impl World {
    fn new(seed: u64) -> Self {
        Self {
            dice: Dice::new(seed),
            machines: [SessionMachine::new(), SessionMachine::new()],
            owner: None,
            runs: Vec::new(),
            rows: VecDeque::new(),
            answers: Vec::new(),
            open: None,
            now: 0,
            submitted: 0,
            delivered: Vec::new(),
            withdrawn: HashSet::new(),
            turns: 0,
            begun_by: None,
            cell: None,
        }
    }

    fn input(&mut self, process: usize, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let actions = self.machines[process].handle(TimeMs(self.now), input);
            for action in actions {
                self.act(process, action, &mut inputs);
            }
        }
    }

    fn act(&mut self, process: usize, action: Action, inputs: &mut VecDeque<Input>) {
        match action {
            Action::Take if self.owner.is_some() => inputs.push_back(Input::NotTaken),
            Action::Take => {
                self.owner = Some(process);
                inputs.extend(self.answers.iter().cloned().map(Input::Answered));
                inputs.push_back(Input::Taken {
                    open: self.open.clone(),
                    waiting: self.rows.iter().cloned().collect(),
                });
            }
            Action::Start { run, message } => {
                self.begins(process, run);
                assert_eq!(self.open, None);
                let row = self.rows.iter().position(|it| it.ticket == message.ticket);
                assert_eq!(row, Some(0), "a message began out of order");
                self.deliver(&message.ticket);
                self.begun_by = Some(*message);
                self.turns += 1;
                let turn = TurnId::new(format!("t{}", self.turns));
                self.open = Some((turn, Vec::new()));
            }
            Action::Resume { run, turn, answers } => {
                self.begins(process, run);
                self.begun_by = None;
                let (open, questions) = self.open.as_ref().expect("a turn is open");
                assert_eq!(*open, turn);
                if !questions.is_empty() {
                    assert_eq!(answers.len(), questions.len());
                }
                // The turn takes the rows of what it was given.
                self.answers.clear();
                self.open = Some((turn, Vec::new()));
            }
            Action::Release => {
                assert_eq!(self.owner, Some(process));
                assert!(self.runs.iter().all(|it| it.0 != process));
                assert_ne!(self.cell, Some(process));
                self.owner = None;
            }
            Action::RunCell => {
                assert_eq!(self.owner, Some(process));
                assert!(self.runs.is_empty(), "a cell runs beside a turn");
                assert_eq!(self.cell.replace(process), None, "two cells run");
            }
            Action::Steer { .. } | Action::CancelTurn { .. } | Action::StopCell => {}
            Action::Refuse(_) | Action::Tell(_) => {}
        }
    }

    fn begins(&mut self, process: usize, run: Run) {
        assert_eq!(self.owner, Some(process));
        assert!(self.runs.is_empty(), "two turns run");
        assert_eq!(self.cell, None, "a turn runs beside a cell");
        self.runs.push((process, run));
    }

    fn deliver(&mut self, ticket: &TicketId) {
        self.rows.retain(|it| it.ticket != *ticket);
        assert!(!self.delivered.contains(ticket), "delivered twice");
        self.delivered.push(ticket.clone());
    }

    /// Something happens to the session, somewhere.
    fn step(&mut self) {
        let process = usize::try_from(self.dice.roll(2)).unwrap();
        self.now += self.dice.roll(500);
        match self.dice.roll(14) {
            0..=2 => {
                self.submitted += 1;
                let delivery = match self.dice.roll(2) {
                    0 => Delivery::Queue,
                    _ => Delivery::Steer,
                };
                let message = message(&self.submitted.to_string(), delivery);
                self.rows.push_back(message.clone());
                // The process that owns the session learns of every row, its own and those of others.
                let at = self.owner.unwrap_or(process);
                self.input(at, Input::Submitted(message));
            }
            3 => self.withdraw(),
            4 => self.input(process, Input::Cancel),
            5 => self.lose(process),
            6 => self.crash(process),
            7 => self.answer(process),
            8 => self.input(process, Input::Due),
            9 => self.input(process, Input::CellAsked),
            10 => self.end_cell(),
            _ => self.run_on(),
        }
    }

    fn withdraw(&mut self) {
        let Some(ticket) = self.rows.back().map(|it| it.ticket.clone()) else {
            return;
        };
        if let Some(owner) = self.owner {
            let input = Input::Withdrawn {
                ticket: ticket.clone(),
            };
            let actions = self.machines[owner].handle(TimeMs(self.now), input);
            if actions.iter().any(|it| matches!(it, Action::Refuse(_))) {
                return;
            }
        }
        self.rows.pop_back();
        self.withdrawn.insert(ticket);
    }

    /// The other process takes the session away, as after a lease ran out.
    fn lose(&mut self, process: usize) {
        let Some(owner) = self.owner.filter(|owner| *owner != process) else {
            return;
        };
        self.owner = None;
        self.runs.clear();
        self.cell = None;
        self.input(owner, Input::OwnerLost);
        // What it was told to wait for is told to the next one.
        self.input(process, Input::Due);
    }

    fn crash(&mut self, process: usize) {
        self.machines[process] = SessionMachine::new();
        self.runs.retain(|it| it.0 != process);
        self.cell = self.cell.filter(|it| *it != process);
        if self.owner == Some(process) {
            self.owner = None;
        }
    }

    fn answer(&mut self, process: usize) {
        let Some((_, questions)) = self.open.as_ref().filter(|it| !it.1.is_empty()) else {
            return self.submit_answer(process, approve("none"));
        };
        let at = usize::try_from(self.dice.roll(questions.len() as u64)).unwrap();
        let name = questions[at].id.0.clone();
        let answer = match self.dice.roll(4) {
            0 => Answer {
                hash: "another".to_owned(),
                ..approve(&name)
            },
            _ => approve(&name),
        };
        self.submit_answer(process, answer);
    }

    fn submit_answer(&mut self, process: usize, answer: Answer) {
        self.answers.push(answer.clone());
        match self.owner {
            Some(owner) => self.input(owner, Input::Answered(answer)),
            // The session is taken, and the answer is found then.
            None => self.input(process, Input::Due),
        }
    }

    /// The turn that runs continues: takes steering, parks or ends.
    fn run_on(&mut self) {
        let Some((process, run)) = self.runs.first().copied() else {
            return;
        };
        let steering = self.rows.iter().find(|it| it.delivery == Delivery::Steer);
        match (self.dice.roll(4), steering.cloned()) {
            (0, Some(message)) => {
                self.begun_by = None;
                let ticket = message.ticket;
                let input = Input::Steered {
                    run,
                    ticket: ticket.clone(),
                };
                let actions = self.machines[process].handle(TimeMs(self.now), input);
                // Only what was handed to the turn can be taken by it.
                if !actions.is_empty() {
                    self.deliver(&ticket);
                }
            }
            (1, _) => {
                self.begun_by = None;
                let (turn, _) = self.open.clone().expect("a turn runs");
                let mut questions = vec![question("q1"), question("q2")];
                questions.truncate(1 + usize::try_from(self.dice.roll(2)).unwrap());
                for question in &mut questions {
                    question.expires = Some(TimeMs(self.now + 2_000));
                }
                self.runs.clear();
                self.open = Some((turn.clone(), questions.clone()));
                self.input(
                    process,
                    Input::Parked {
                        run,
                        turn,
                        questions,
                    },
                );
            }
            (2, _) => self.not_started(process, run),
            _ => self.end(process, run),
        }
    }

    /// The turn needs what is not there, such as a key: its message, if a message began it, still waits.
    fn not_started(&mut self, process: usize, run: Run) {
        self.runs.clear();
        if let Some(message) = self.begun_by.take() {
            self.delivered.retain(|it| *it != message.ticket);
            self.rows.push_front(message);
            self.open = None;
        }
        self.input(process, Input::NotStarted { run });
    }

    fn end_cell(&mut self) {
        if let Some(process) = self.cell.take() {
            self.input(process, Input::CellEnded);
        }
    }

    fn end(&mut self, process: usize, run: Run) {
        self.runs.clear();
        self.open = None;
        self.input(process, Input::TurnEnded { run });
    }

    /// Whatever was left open ends once time passes and a process looks at the session.
    fn settle(&mut self) {
        for _ in 0..1_000 {
            self.end_cell();
            match self.runs.first().copied() {
                Some((process, run)) => self.end(process, run),
                None if self.cell.is_some() => {}
                None if self.rows.is_empty() && self.open.is_none() => return,
                None => {
                    self.now += 10_000;
                    self.input(0, Input::Due);
                }
            }
        }
        panic!("the session hangs: {:?}, {:?}", self.open, self.rows);
    }
}

#[test]
fn whatever_happens_no_message_is_lost_or_delivered_twice_and_the_session_comes_to_rest() {
    for seed in 0..3_000 {
        let mut world = World::new(seed);
        for _ in 0..60 {
            world.step();
        }
        world.settle();
        let gone = world.delivered.len() + world.withdrawn.len();
        assert_eq!(gone, world.submitted as usize, "seed {seed}");
        assert!(world.owner.is_none(), "seed {seed} holds the session");
        assert!(world.machines.iter().all(SessionMachine::is_at_rest));
    }
}
