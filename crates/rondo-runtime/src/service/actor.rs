//! Works on a session as long as there is something to do in it: does what the session machine says.

use super::cells::{AskedCell, RunningCell, next_cell};
use super::cursor::CursorPosition;
use super::entry::{Entry, SteeringMessage, attended};
use super::folder::FolderAsk;
use super::host::AskedTurn;
use super::known::KnownRow;
use super::live::LiveServer;
use super::opened::{OwnMessage, connect_opened};
use super::running::{MachineRun, Step, TurnUpdates};
use super::taking::{open_turn, runs_of, take};
use super::update::UpdateBody;
use crate::compaction;
use crate::error::{Result, SetupError, SetupErrorKind};
use crate::parking;
use crate::python;
use crate::secrets;
use crate::session::Session;
use crate::spec::TurnSpec;
use crate::turn::{Turn, TurnBuilder, TurnStart};
use rondo_core::clock::Clock;
use rondo_core::ports::{Mail, MailBody, MailId, Seq};
use rondo_core::session::{
    Action, Delivery, Input, QueuedMessage, Refusal, Run, SessionEvent, SessionMachine, TicketId,
};
use rondo_core::{Journal as _, TurnEnd};
use rondo_types::{Answer, QuestionId, TimeMs, TurnId};
use std::collections::{HashMap, VecDeque};
use std::future::pending;
use std::sync::Arc;
use tokio::task::spawn_blocking;

pub(super) struct Actor {
    pub(super) entry: Arc<Entry>,
    pub(super) machine: SessionMachine,
    /// While the machine owns it.
    pub(super) session: Option<Session>,
    pub(super) running: Option<MachineRun>,
    /// The rows of the mailbox that the machine knows, by their keys.
    pub(super) known: HashMap<String, KnownRow>,
    /// The rows of the mailbox that were just read, for the session that is taken because of them.
    looked: Option<Vec<Mail>>,
    /// Messages that were handed to the turn that runs, in order.
    handed: VecDeque<(TicketId, MailId)>,
    /// The latest record before the turn that runs.
    before: Seq,
    /// Inputs that the machine takes next.
    pub(super) inputs: VecDeque<Input>,
    /// How often it was tried to take the session.
    takes: u64,
    /// A person's cells that wait.
    pub(super) cells: VecDeque<AskedCell>,
    /// The one that runs.
    pub(super) cell: Option<RunningCell>,
    /// Why cells cannot run.
    pub(super) cell_error: Option<SetupError>,
    /// The message that begins the turn, by its key, and who submitted it; `None` if the turn continues.
    pub(super) asked: Option<(String, String)>,
    /// The host's message that is in no mailbox.
    pub(super) own: Option<OwnMessage>,
    /// Questions about the folder.
    pub(super) folder: FolderAsk,
    /// Serves the events of its turns to other processes, once there is one.
    pub(super) live: Option<LiveServer>,
}

impl Actor {
    pub(super) fn new(entry: Arc<Entry>) -> Self {
        Self {
            entry,
            machine: SessionMachine::new(),
            session: None,
            running: None,
            known: HashMap::new(),
            looked: None,
            handed: VecDeque::new(),
            before: Seq::default(),
            inputs: VecDeque::new(),
            takes: 0,
            cells: VecDeque::new(),
            cell: None,
            cell_error: None,
            asked: None,
            own: None,
            folder: FolderAsk::default(),
            live: None,
        }
    }

    /// A turn is under way for nearly all of the time: what is awaited briefly is boxed, so that the task does not hold the
    /// room for all of it meanwhile. So is the actor, which an `async fn` would hold twice.
    pub(super) async fn run(mut self: Box<Self>) {
        loop {
            self.note_steered();
            if !self.inputs.is_empty() {
                Box::pin(self.go_on()).await;
            }
            let (look, resume) = self.entry.work().take();
            if self.entry.drains() {
                Box::pin(self.input(Input::Drain)).await;
            }
            if resume {
                Box::pin(self.input(Input::Due)).await;
            }
            if look {
                Box::pin(self.look()).await;
            }
            if !self.entry.work().cells.is_empty() {
                Box::pin(self.take_cells()).await;
            }
            if self.machine.is_at_rest() && self.entry.ends() {
                return;
            }
            let lost = self.lost();
            tokio::select! {
                () = self.entry.wake.notified() => {}
                step = next(&mut self.running) => Box::pin(self.step(step)).await,
                finished = next_cell(&mut self.cell) => {
                    Box::pin(self.cell_is_over(finished)).await;
                }
                () = lost => {
                    Box::pin(self.input(Input::OwnerLost)).await;
                    Box::pin(self.let_go()).await;
                }
            }
        }
    }

    /// Waits until another process owns the session.
    fn lost(&self) -> impl Future<Output = ()> + use<> {
        let conversation = self.session.as_ref().and_then(Session::conversation);
        // If the host has opened the session, the turn ends by itself as its records are refused.
        let conversation = conversation.filter(|_| !self.entry.is_of_host);
        let lost = conversation.map(|it| it.journal.lost());
        async move {
            match lost {
                Some(lost) => lost.cancelled().await,
                None => pending().await,
            }
        }
    }

    /// Tells the machine what is new in the mailbox.
    async fn look(&mut self) {
        let Some(rows) = self.rows().await else {
            return;
        };
        self.take_back(&rows).await;
        let takes = self.takes;
        let begins = rows.iter().any(|it| it.body.is_message()) && !self.entry.drains();
        if begins && self.machine.is_at_rest() {
            // The rows with which the session is taken: a turn reads its message again as it begins.
            self.looked = Some(rows);
            self.input(Input::Due).await;
            self.looked = None;
            return;
        }
        for row in rows {
            self.see(row).await;
            // All rows were read when the session was taken, or it cannot be accepted now: another row changes neither.
            if self.takes != takes && self.machine.is_at_rest() {
                return;
            }
        }
    }

    async fn rows(&mut self) -> Option<Vec<Mail>> {
        match self.entry.store().list(&self.entry.id).await {
            Ok(rows) => {
                let newest = rows.iter().map(|it| it.id).max();
                let mut work = self.entry.work();
                work.seen = work.seen.max(newest.unwrap_or_default());
                Some(rows)
            }
            Err(error) => {
                self.failed(&crate::parking::unkept(error));
                None
            }
        }
    }

    /// Reports messages that do not wait any more. Those that began a turn are gone with its first record.
    async fn take_back(&mut self, rows: &[Mail]) {
        let is_gone = |key: &String| rows.iter().all(|it| it.key != *key);
        let gone: Vec<String> = self
            .known
            .keys()
            .filter(|it| is_gone(it))
            .cloned()
            .collect();
        let begun = Arc::clone(&self.entry);
        for key in gone {
            let known = self.known.remove(&key);
            let has_begun = begun.begun.lock().await.remove(&key).is_some();
            self.entry.attached().forget(&key);
            if known.is_some_and(|it| it.is_message) && !has_begun {
                let ticket = TicketId(key);
                self.input(Input::Withdrawn { ticket }).await;
            }
        }
    }

    /// Tells the machine of a row, unless it knows it.
    async fn see(&mut self, row: Mail) {
        let known = self.known.get(&row.key);
        let is_known = known.is_some();
        let is_edited = known.is_some_and(|it| it.revision != row.revision);
        if is_known && !is_edited {
            return;
        }
        // Its requester takes it, and the turn that runs meanwhile has not asked.
        if self.session.is_some() && self.answers_folder_question(&row) {
            return self.note(&row);
        }
        if is_edited && self.entry.begun.lock().await.contains_key(&row.key) {
            return;
        }
        self.note(&row);
        let ticket = TicketId(row.key);
        let input = match row.body {
            MailBody::Message { message, .. } if is_edited => Input::Edited { ticket, message },
            MailBody::Message { message, delivery } => Input::Submitted(QueuedMessage {
                ticket,
                message,
                delivery,
                actor: row.actor,
            }),
            MailBody::Answer { answer } => Input::Answered(answer),
            MailBody::Cancel => {
                // Otherwise it stays for the process that owns the session.
                if self.session.is_some() {
                    self.drop_row(&ticket.0).await;
                }
                Input::Cancel
            }
        };
        self.input(input).await;
    }

    pub(super) fn note(&mut self, row: &Mail) {
        self.known.insert(row.key.clone(), KnownRow::of(row));
    }

    /// Tells the machine, and does what it says, and what follows from that.
    pub(super) async fn input(&mut self, input: Input) {
        self.inputs.push_back(input);
        self.go_on().await;
    }

    /// Gives the machine the inputs that come next, in order.
    async fn go_on(&mut self) {
        while let Some(input) = self.inputs.pop_front() {
            let actions = self.machine.handle(Clock::system().now(), input);
            for action in actions {
                self.act(action).await;
            }
        }
    }

    async fn act(&mut self, action: Action) {
        match action {
            Action::Take => self.take().await,
            Action::Start { run, .. } | Action::Resume { run, .. } if !self.lets_begin() => {
                self.inputs.push_back(Input::NotStarted { run });
            }
            Action::Start { run, message } => self.start(run, *message).await,
            Action::Resume { run, answers, .. } => self.resume(run, answers),
            Action::Steer { message, .. } => self.steer(&message).await,
            Action::CancelTurn { run } => self.cancel(run).await,
            Action::RunCell => self.run_cell().await,
            Action::StopCell => self.stop_cell(),
            Action::Release => {
                self.let_go().await;
                self.ask_cells_again();
            }
            Action::Refuse(refusal) => self.refused(refusal).await,
            // The turn's own event says so, and is recorded.
            Action::Tell(SessionEvent::Parked { .. }) => {}
            Action::Tell(SessionEvent::Lost) => {
                self.let_go().await;
                if let Some(cell) = self.cell.take() {
                    cell.abandon();
                }
                self.refuse_cells();
                self.tell(UpdateBody::Session {
                    event: SessionEvent::Lost,
                });
            }
            Action::Tell(event) => self.tell(UpdateBody::Session { event }),
        }
    }

    fn lets_begin(&self) -> bool {
        self.entry.service.host.lets_begin(&self.entry.id)
    }

    async fn take(&mut self) {
        self.takes = self.takes.wrapping_add(1);
        if let Some(opened) = self.entry.opened() {
            return self.take_opened(opened).await;
        }
        if self.entry.is_of_host {
            return self.inputs.push_back(Input::NotTaken);
        }
        let entry = Arc::clone(&self.entry);
        let taken = spawn_blocking(move || take(&entry)).await;
        let taken = taken.map_err(|err| {
            let context = "the thread that opens the session failed";
            SetupError::because(SetupErrorKind::Other, context, err)
        });
        let session = match taken.flatten() {
            Ok(session) => session,
            Err(error) => {
                match error.kind {
                    // The machine tells those who listen that another process has it.
                    SetupErrorKind::SessionInUse => self.tell_host(&error),
                    _ => self.failed(&error),
                }
                self.cell_error = Some(error);
                self.entry.work().retry = true;
                self.entry.service.look_again.notify_one();
                return self.inputs.push_back(Input::NotTaken);
            }
        };
        self.entry.work().retry = false;
        self.cell_error = None;
        let at = session.conversation().map(|it| it.journal.at());
        self.entry.ring().take(at.unwrap_or_default());
        self.known.clear();
        let rows = match self.looked.take() {
            Some(rows) => rows,
            None => self.rows().await.unwrap_or_default(),
        };
        let waiting = self.waiting_in(rows).await;
        let asks_again = self.entry.service.host.asks_again(&self.entry.id);
        let open = open_turn(&session, asks_again);
        self.session = Some(session);
        self.inputs.push_back(Input::Taken { open, waiting });
    }

    /// Returns the messages of the mailbox that a session is taken with, and tells the machine of the rest.
    pub(super) async fn waiting_in(&mut self, rows: Vec<Mail>) -> Vec<QueuedMessage> {
        let mut waiting = Vec::new();
        for row in rows {
            self.note(&row);
            match row.body {
                MailBody::Message { message, delivery } => waiting.push(QueuedMessage {
                    ticket: TicketId(row.key),
                    message,
                    delivery,
                    actor: row.actor,
                }),
                MailBody::Answer { answer } => self.inputs.push_back(Input::Answered(answer)),
                MailBody::Cancel => {
                    self.drop_row(&row.key).await;
                    self.inputs.push_back(Input::Cancel);
                }
            }
        }
        waiting
    }

    async fn start(&mut self, run: Run, mut message: QueuedMessage) {
        let key = message.ticket.0.clone();
        self.asked = Some((key.clone(), message.actor.clone()));
        if let Some(own) = self.own.as_ref().filter(|it| it.ticket.0 == key) {
            let message = message.message.into();
            let start = TurnStart::Message { message, row: None };
            let planned = Ok(Some((own.spec.clone(), start)));
            return self.connect(run, planned, Some(key));
        }
        let entry = Arc::clone(&self.entry);
        // From here on it cannot be changed in this process.
        let mut begun = entry.begun.lock().await;
        message.message = match self.as_it_is_now(&key, message.message).await {
            Ok(Some(now)) => now,
            Ok(None) => {
                self.known.remove(&key);
                return self.inputs.push_back(Input::TurnEnded { run });
            }
            Err(error) => return self.not_started(run, &crate::parking::unkept(error)),
        };
        begun.insert(key, None);
        drop(begun);
        self.ask_or_plan(run, message).await;
    }

    /// Plans the turn of a message, whatever was asked about the folder, and connects its model.
    pub(super) async fn plan_message(&mut self, run: Run, begun: QueuedMessage) {
        let (key, delivery) = (begun.ticket.0, begun.delivery);
        let Some(row) = self.known.get(&key) else {
            // Another process took it back.
            return self.inputs.push_back(Input::TurnEnded { run });
        };
        let start = TurnStart::Message {
            message: begun.message.into(),
            row: Some((row.id, row.revision)),
        };
        let planned = match &mut self.session {
            Some(session) if delivery == Delivery::Compact => {
                let history = session.conversation().map_or(&[][..], |it| &it.history);
                if let Some(early) = compaction::too_early(history) {
                    let message = format!("there is nothing to summarize yet: {early}");
                    self.tell(UpdateBody::Failed {
                        message,
                        hint: None,
                    });
                    self.drop_row(&key).await;
                    return self.inputs.push_back(Input::TurnEnded { run });
                }
                session.spec().map(|mut spec| {
                    spec.only_sum_up();
                    Some(spec)
                })
            }
            Some(session) if self.entry.is_of_host => session.spec_as_before().map(Some),
            Some(session) => session.spec().map(|mut spec| {
                if self.entry.python().is_some() {
                    python::offer(&mut spec, &session.settings);
                }
                Some(spec)
            }),
            None => Ok(None),
        };
        let planned = planned.map(|spec| spec.map(|spec| (spec, start)));
        self.connect(run, planned, Some(key));
    }

    fn resume(&mut self, run: Run, answers: Vec<Answer>) {
        self.asked = None;
        let given = answers.into_iter().map(|answer| {
            let mail = self.row_of(&answer);
            (answer, mail)
        });
        let given = given.collect();
        let planned = match &mut self.session {
            Some(session) => {
                session.give(given);
                session.cut_off()
            }
            None => Ok(None),
        };
        self.connect(run, planned, None);
    }

    fn row_of(&self, answer: &Answer) -> Option<MailId> {
        let session = self.session.as_ref()?.conversation()?;
        let rows = session.answers.iter();
        let mut rows = rows.filter(|it| it.0 == *answer);
        rows.next().and_then(|it| it.1)
    }

    /// Connects the model of a turn. `message` is the key of the one that begins it.
    fn connect(
        &mut self,
        run: Run,
        planned: Result<Option<(TurnSpec, TurnStart)>>,
        message: Option<String>,
    ) {
        let (spec, start) = match planned {
            Ok(Some(planned)) => planned,
            Ok(None) => return self.inputs.push_back(Input::TurnEnded { run }),
            Err(error) => return self.not_started(run, &error),
        };
        let Some(session) = &self.session else {
            return self.inputs.push_back(Input::NotStarted { run });
        };
        let (runtime, settings) = (session.runtime().clone(), session.settings.clone());
        let entry = Arc::clone(&self.entry);
        let connecting = async move {
            let connected = match entry.is_of_host {
                true => connect_opened(&runtime, &settings, &spec, start).await,
                false => (runtime.connect(&spec, &settings).await).map(|it| (it, start)),
            };
            // A person may have set another one in the shell while weights were fetched.
            let secrets = entry.with_shells(secrets::of_env(&settings));
            let approver = parking::approver(&settings, parking::parking(&settings));
            let builder = |(it, start)| TurnBuilder::new(spec, start, it, approver, secrets);
            Box::new(connected.map(builder))
        };
        self.running = Some(MachineRun::connecting(run, message, connecting));
    }

    pub(super) fn not_started(&mut self, run: Run, error: &SetupError) {
        self.failed(error);
        self.running = None;
        self.inputs.push_back(Input::NotStarted { run });
    }

    async fn step(&mut self, step: Step) {
        let Some(run) = self.running.as_ref().map(|it| it.run) else {
            return;
        };
        match step {
            Step::FolderAsked(answered) => {
                self.folder_asked(run, answered.map(|it| *it)).await;
            }
            Step::Connected(connected) => self.begin(run, *connected).await,
            Step::End(end) => self.ended(run, end).await,
        }
        self.go_on().await;
    }

    async fn begin(&mut self, run: Run, connected: Result<TurnBuilder>) {
        // Another process may have changed it while the model was connected: it begins as it is then.
        if self.is_outdated().await {
            self.running = None;
            self.entry.work().look = true;
            return self.inputs.push_back(Input::NotStarted { run });
        }
        let turn = match connected {
            Ok(builder) => self.turn(builder).await,
            Err(error) => Err(error),
        };
        let (turn, updates) = match turn {
            Ok(turn) => turn,
            Err(error) => return self.not_started(run, &error),
        };
        // Its stop was requested while its model was connected.
        let is_cancelled = self.running.as_ref().is_some_and(|it| it.is_cancelled);
        let is_cancelled = is_cancelled || turn.is_stopped;
        let running = MachineRun::turn(run, turn, updates).await;
        if is_cancelled && let Some(handle) = running.handle() {
            handle.cancel();
        }
        self.running = Some(running);
        self.serve_live();
        // They came while its model was connected, and are said before those that come from now on.
        let early: Vec<QueuedMessage> = self.machine.handed().cloned().collect();
        for message in &early {
            self.steer(message).await;
        }
    }

    /// Builds the turn with what the host brings, and says where its updates begin.
    async fn turn(&mut self, mut builder: TurnBuilder) -> Result<(Turn, TurnUpdates)> {
        let session = self.session.as_mut().ok_or_else(let_go)?;
        let asked = self.asked.as_ref();
        let asked = AskedTurn {
            session: &self.entry.id,
            begins: asked.map(|(key, actor)| (key.as_str(), actor.as_str())),
            is_of_host: matches!(builder.start, TurnStart::Message { row: None, .. }),
            settings: &session.settings,
            began: session.conversation().map_or(TimeMs(0), |it| it.began),
            history: session.conversation().map_or(&[], |it| &it.history),
        };
        self.entry.service.host.turn(&asked, &mut builder).await?;
        builder.approver = attended(&self.entry, &session.settings, builder.approver);
        builder.terminal = self.entry.service.loans.terminal(&self.entry.id);
        if let Some(lent) = self.entry.python() {
            let looks = python::looks(&builder.spec.profile, &session.settings);
            let functions = rondo_python::tools(lent.session(), looks);
            builder.live.extend(functions);
        }
        let turn = session.turn(builder)?;
        let asked = turn.start().message().cloned();
        let runs = match turn.start() {
            TurnStart::CutOff(cut_off) => runs_of(&cut_off.records),
            TurnStart::Message { .. } => 0,
        };
        let conversation = session.conversation().ok_or_else(let_go)?;
        let number = (conversation.turns.saturating_add(1), runs);
        let beginning = CursorPosition::beginning(number.0, number.1, TimeMs(0));
        self.before = conversation.journal.at();
        self.entry.ring().begin(beginning);
        let updates = TurnUpdates::new(Arc::clone(&self.entry), number, asked);
        Ok((turn, updates))
    }

    /// Notes the steering messages that the turn said since this was called last.
    fn note_steered(&mut self) {
        let running = self.running.as_ref();
        let Some((run, steered)) = running.map(|it| (it.run, it.take_steered())) else {
            return;
        };
        for _ in 0..steered {
            if let Some(ticket) = self.next_handed() {
                self.inputs.push_back(Input::Steered { run, ticket });
            }
        }
    }

    /// Returns the message that the turn said next of those that it was handed.
    fn next_handed(&mut self) -> Option<TicketId> {
        let turn = self.running.as_ref().and_then(MachineRun::handle)?.clone();
        while let Some((ticket, mail)) = self.handed.pop_front() {
            if !turn.was_taken_back(mail) {
                return Some(ticket);
            }
        }
        None
    }

    async fn ended(&mut self, run: Run, end: Result<TurnEnd>) {
        self.note_steered();
        let running = self.running.take();
        let turn = running.as_ref().and_then(MachineRun::id).cloned();
        let mut begun = self.entry.begun.lock().await;
        for (ticket, _) in self.handed.drain(..) {
            begun.remove(&ticket.0);
        }
        drop(begun);
        // A loss that was reported to the turn is not news to a cell.
        if let Some(lent) = self.entry.python() {
            lent.sync();
            let conversation = self.session.as_ref().and_then(Session::conversation);
            if let Some(last) = conversation.map(|it| it.journal.at()) {
                lent.ran(&self.entry.id, Seq(self.before.0 + 1), last);
            }
        }
        self.entry.service.host.ended(&self.entry.id, &end);
        match end {
            Ok(TurnEnd::Done(outcome)) if self.is_end_unrecorded() => {
                // By its records it was cut off, and its sender has no answer.
                let message = outcome.error.map_or_else(String::new, |it| it.message);
                self.not_started(run, &SetupError::new(SetupErrorKind::Other, message));
            }
            Ok(TurnEnd::Done(outcome)) => {
                if let Some(session) = &mut self.session {
                    session.finished(&outcome);
                }
                self.look_at_edited().await;
                self.inputs.push_back(Input::TurnEnded { run });
            }
            Ok(TurnEnd::Parked(parked)) => {
                let due = parked.questions.iter().filter_map(|it| it.expires).min();
                self.entry.work().due = due;
                self.entry.service.look_again.notify_one();
                self.inputs.push_back(Input::Parked {
                    run,
                    turn: turn.unwrap_or_else(|| TurnId::new("")),
                    questions: parked.questions,
                });
            }
            Err(error) => self.not_started(run, &error),
        }
    }

    /// Returns whether the latest records are lost, for another reason than that the session has another owner now.
    fn is_end_unrecorded(&self) -> bool {
        let conversation = self.session.as_ref().and_then(Session::conversation);
        let journal = conversation.map(|it| &it.journal);
        journal.is_some_and(|it| it.has_failed() && !it.lost().is_cancelled())
    }

    async fn steer(&mut self, message: &QueuedMessage) {
        let key = &message.ticket.0;
        let handle = self.running.as_ref().and_then(MachineRun::handle);
        let (Some(handle), Some(row)) = (handle, self.known.get(key)) else {
            return;
        };
        let said = message.message.clone();
        // From here on it cannot be changed, until it is taken back or the turn is over and has not said it.
        let mut begun = self.entry.begun.lock().await;
        if handle.steer_from(row.id, row.revision, said) {
            let steers = SteeringMessage {
                turn: handle.clone(),
                mail: row.id,
            };
            begun.insert(key.clone(), Some(steers));
            self.handed.push_back((message.ticket.clone(), row.id));
        }
    }

    async fn cancel(&mut self, run: Run) {
        let Some(running) = &mut self.running else {
            return;
        };
        if let Some(handle) = running.handle() {
            return handle.cancel();
        }
        match running.message.take() {
            // Nothing is recorded of it: it is taken back with its message.
            Some(key) => {
                self.running = None;
                self.folder = FolderAsk::default();
                self.drop_row(&key).await;
                self.entry.begun.lock().await.remove(&key);
                let ticket = TicketId(key);
                self.tell(UpdateBody::Session {
                    event: SessionEvent::Withdrawn { ticket },
                });
                self.inputs.push_back(Input::TurnEnded { run });
            }
            // The host does not want it to continue now.
            None if !self.entry.service.host.lets_begin(&self.entry.id) => {
                self.running = None;
                self.inputs.push_back(Input::NotStarted { run });
            }
            // It has to be resumed for its end to be recorded.
            None => running.is_cancelled = true,
        }
    }

    async fn refused(&mut self, refusal: Refusal) {
        match refusal {
            Refusal::NoQuestion { question } | Refusal::Changed { question } => {
                self.drop_answers(&question).await;
            }
            // It stays in the mailbox, and is found when the session is taken next.
            Refusal::QueueFull { .. } | Refusal::NotWaiting { .. } => {}
        }
    }

    /// Removes answers to what is not asked any more. The one that a turn was given stays until it is recorded.
    async fn drop_answers(&mut self, question: &QuestionId) {
        let cut_off = self.session.as_ref().and_then(Session::conversation);
        let cut_off = cut_off.and_then(|it| it.cut_off.as_ref());
        let asked = cut_off.iter().flat_map(|it| &it.questions);
        let asked: Vec<&str> = asked.map(|it| it.hash.as_str()).collect();
        let is_stale = |it: &Answer| it.question == *question && !asked.contains(&it.hash.as_str());
        let rows = self.known.iter();
        let stale = rows.filter(|(_, row)| row.answer.as_deref().is_some_and(is_stale));
        let stale: Vec<String> = stale.map(|(key, _)| key.clone()).collect();
        for key in stale {
            self.drop_row(&key).await;
        }
    }

    /// Lets go of the session, and forgets what is known of it.
    async fn let_go(&mut self) {
        self.live = None;
        if let Some(session) = self.session.take() {
            // Of one whose record did not begin, another process may record the first.
            let at = session.conversation().map(|it| it.journal.at());
            let at = at.unwrap_or_default();
            self.entry.ring().release(at);
            self.entry.work().head = at;
        }
        if self.entry.is_of_host {
            self.entry.work().drain = true;
        }
        self.running = None;
        self.folder = FolderAsk::default();
        self.handed.clear();
        self.known.clear();
        self.entry.begun.lock().await.clear();
    }

    fn tell_host(&self, error: &SetupError) {
        let key = self.asked.as_ref().map(|(key, _)| key.as_str());
        self.entry.service.host.failed(&self.entry.id, key, error);
    }

    pub(super) fn failed(&self, error: &SetupError) {
        self.tell_host(error);
        self.tell(UpdateBody::Failed {
            message: error.to_string(),
            hint: error.hint.clone(),
        });
    }

    /// Sends an update that is in no record, after the last one that was sent.
    pub(super) fn tell(&self, body: UpdateBody) {
        self.entry.tell_unrecorded(body);
    }
}

/// Waits forever if nothing runs.
async fn next(running: &mut Option<MachineRun>) -> Step {
    match running {
        Some(running) => running.next().await,
        None => pending().await,
    }
}

pub(super) fn let_go() -> SetupError {
    SetupError::new(SetupErrorKind::Other, "the session was released")
}

#[cfg(test)]
mod tests;
