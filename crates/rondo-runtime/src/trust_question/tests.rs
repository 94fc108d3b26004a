//! Questions about folders: what they agree to, what they show, and whose answer counts.

use super::*;
use crate::table::Layer;
use async_trait::async_trait;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

fn project(folder: &str, value: &str) -> UntrustedProject {
    let folder = PathBuf::from(folder);
    UntrustedProject {
        file: folder.join(".rondo/config.toml"),
        folder,
        layer: Layer::default(),
        ignored: vec![("model".to_owned(), value.into())],
    }
}

fn difference(now: &str) -> Difference {
    Difference {
        root: "/p".into(),
        path: "/p/.envrc".into(),
        kind: DifferenceKind::Changed,
        before: Some(b"before\n".to_vec()),
        now: Some(now.as_bytes().to_vec()),
    }
}

fn server(described: &str) -> WaitingServer {
    WaitingServer {
        name: "weather".to_owned(),
        file: "/p/.mcp.json".into(),
        described: described.to_owned(),
        is_declined: false,
    }
}

#[test]
fn a_question_has_another_hash_if_anything_that_is_agreed_to_differs() {
    let settings = [("/p", "a"), ("/q", "a"), ("/p", "b")];
    let settings = settings.map(|(folder, value)| of_settings(&project(folder, value)));
    let changes = ["x\n", "y\n"].map(|it| of_differences(&[difference(it)]));
    let servers = [("/p", "1"), ("/q", "1"), ("/p", "2")]
        .map(|(folder, hash)| of_servers(Path::new(folder), &[server("run")], &[hash.to_owned()]));
    let all: Vec<Question> = settings.into_iter().chain(changes).chain(servers).collect();
    for (at, question) in all.iter().enumerate() {
        assert_eq!(question.kind, QuestionKind::Trust);
        let others = all.iter().skip(at + 1);
        assert!(others.clone().all(|it| it.hash != question.hash), "{at}");
    }
    let again = of_settings(&project("/p", "a"));
    assert_eq!(again, all[0]);
}

#[test]
fn a_question_shows_what_is_agreed_to_without_control_characters_and_within_bounds() {
    let question = of_settings(&project("/p", "a\u{1b}[2J"));
    assert!(question.prompt.contains("  model = "), "{question:?}");
    assert!(!question.prompt.contains('\u{1b}'), "{question:?}");
    let long = "line\n".repeat(300);
    let many: Vec<Difference> = (0..40).map(|_| difference(&long)).collect();
    let question = of_differences(&many);
    assert!(question.prompt.len() < 2 * DIFFERENCES_BYTES_MAX);
    assert!(
        question
            .prompt
            .contains("more lines, which `rondo doctor --review` shows")
    );
    assert!(question.prompt.ends_with(review::QUESTION));
    let question = of_servers(Path::new("/p"), &[server("npx weather")], &[]);
    assert!(
        question.prompt.contains("  weather: npx weather\n"),
        "{question:?}"
    );
}

/// Denies, and counts how often it is asked.
struct Denies(AtomicUsize);

#[async_trait]
impl Approver for Denies {
    async fn ask(&self, question: &Question) -> QuestionReply {
        self.0.fetch_add(1, Ordering::Relaxed);
        QuestionReply::denied(question, "ada", "no")
    }
}

#[tokio::test]
async fn a_question_that_was_denied_is_not_put_again_in_the_same_process() {
    let answers = TrustAnswers::default();
    let question = of_differences(&[difference("x\n")]);
    assert_eq!(answers.answer(&question), None);
    let approver = Arc::new(Denies(AtomicUsize::default()));
    answers.ask(Some(Arc::clone(&approver) as _));
    for _ in 0..2 {
        assert_eq!(answers.clone().answer(&question), Some(false));
    }
    assert_eq!(approver.0.load(Ordering::Relaxed), 1);
    assert_eq!(
        answers.answer(&of_differences(&[difference("y\n")])),
        Some(false)
    );
    assert_eq!(approver.0.load(Ordering::Relaxed), 2);
}

/// Answers with a yes to another question.
struct AnswersAnother;

#[async_trait]
impl Approver for AnswersAnother {
    async fn ask(&self, question: &Question) -> QuestionReply {
        let mut other = question.clone();
        other.hash = "other".to_owned();
        QuestionReply::approved(&other, "ada")
    }
}

#[test]
fn an_answer_to_another_question_does_not_count() {
    let answers = TrustAnswers::default();
    answers.ask(Some(Arc::new(AnswersAnother)));
    assert_eq!(answers.answer(&of_settings(&project("/p", "a"))), None);
}

#[test]
fn a_question_shows_no_key_of_the_environment() {
    let env = Env::of(&[("OPENAI_API_KEY", "sk-123456789")]);
    let answers = TrustAnswers::default().of(None, &env);
    let question = of_differences(&[difference("export KEY=sk-123456789\n")]);
    assert_eq!(answers.answer(&question), None);
    let open = answers.unanswered();
    assert_eq!(open[0].hash, question.hash);
    assert!(open[0].prompt.contains("export KEY="), "{open:?}");
    assert!(!open[0].prompt.contains("sk-123456789"), "{open:?}");
}

#[test]
fn the_oldest_no_is_forgotten_beyond_a_bound() {
    let answers = TrustAnswers::default();
    let of = |count: usize| of_settings(&project(&format!("/{count}"), "a"));
    answers.ask(Some(Arc::new(Denies(AtomicUsize::new(0)))));
    for count in 0..=DENIED_MAX {
        assert_eq!(answers.answer(&of(count)), Some(false));
        assert_eq!(answers.answer(&of(count)), Some(false));
    }
    answers.ask(None);
    assert_eq!(answers.answer(&of(0)), None);
    assert_eq!(answers.answer(&of(1)), Some(false));
    assert_eq!(answers.answer(&of(DENIED_MAX)), Some(false));
}
