//! Tests: messages, questions and usage of a running call.

use super::fakes::{Bench, NobodyThere, answer, calls};
use crate::ports::{
    Approver, NotAnswered, QUESTION_BYTES_MAX, QUESTIONS_MAX, QuestionReply, Tool, ToolInvocation,
};
use crate::redact::Secrets;
use crate::toolbox::Toolbox;
use async_trait::async_trait;
use futures_util::future::BoxFuture;
use rondo_types::{
    AnswerValue, Concurrency, EventBody, NanoUsd, Question, QuestionKind, RemainingLimits,
    ToolOutcome, ToolProgress, ToolSpec,
};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Work = dyn Fn(ToolInvocation) -> BoxFuture<'static, String> + Send + Sync;

/// Returns the outcome of its work.
struct Does {
    work: Box<Work>,
    timeout: Option<Duration>,
}

#[async_trait]
impl Tool for Does {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "work".to_owned(),
            concurrency: Concurrency::Shared,
            timeout: self.timeout,
            ..ToolSpec::default()
        }
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        ToolOutcome::text((self.work)(invocation).await)
    }
}

fn does<F: Future<Output = String> + Send + 'static>(
    work: impl Fn(ToolInvocation) -> F + Send + Sync + 'static,
) -> Does {
    Does {
        work: Box::new(move |call| Box::pin(work(call))),
        timeout: None,
    }
}

fn bench(tool: Does, count: usize) -> Bench {
    let script = vec![calls(&vec![("work", "{}"); count]), answer("done")];
    let mut bench = Bench::new("default", script);
    bench.tools.push(Arc::new(tool));
    bench
}

fn results(events: &[rondo_types::TurnEvent]) -> Vec<&Value> {
    let finished = events.iter().filter_map(|event| match &event.body {
        EventBody::ToolCallFinished { result, .. } => Some(result),
        _ => None,
    });
    finished.collect()
}

/// Answers by the words of the question.
struct Answers(Mutex<Vec<Question>>);

#[async_trait]
impl Approver for Answers {
    async fn ask(&self, question: &Question) -> QuestionReply {
        self.0.lock().unwrap().push(question.clone());
        let words = question
            .prompt
            .strip_prefix("`work` is running and asks:\n");
        let value = match words.unwrap() {
            "number?" => AnswerValue::value(json!(7)),
            "word?" => AnswerValue::value(json!("x")),
            "yes?" => AnswerValue::Approve,
            "never?" => std::future::pending().await,
            "panic?" => panic!("the screen is gone"),
            _ => AnswerValue::Deny {
                reason: "no".to_owned(),
            },
        };
        QuestionReply::answered(question, "ada", value)
    }
}

fn number() -> Value {
    json!({"type": "integer"})
}

#[tokio::test(start_paused = true)]
async fn a_running_call_asks_a_person_and_goes_on_with_the_answer() {
    let tool = does(async |call: ToolInvocation| {
        let asker = call.asker;
        let answers = (
            asker.input("number?", number()).await,
            asker
                .input("word?", number())
                .await
                .is_err_and(|it| matches!(it, NotAnswered::DoesNotFit(_))),
            asker.input("yes?", number()).await.is_err(),
            asker.approval("yes?").await,
            asker.approval("no?").await,
            asker.approval("number?").await.is_err(),
            asker.approval("panic?").await.is_err(),
        );
        format!("{answers:?}")
    });
    let mut bench = bench(tool, 1);
    let approver = Arc::new(Answers(Mutex::default()));
    bench.approver = Arc::clone(&approver) as Arc<dyn Approver>;
    let ran = bench.run().await;
    let expected =
        r#"(Ok(Number(7)), true, true, Ok(()), Err(Denied { reason: "no" }), true, true)"#;
    assert_eq!(results(&ran.events), [expected]);
    let asked = approver.0.lock().unwrap();
    let first = asked.first().unwrap();
    let subject = &first.subject;
    assert_eq!((subject.tool.as_str(), subject.step), ("work", 1));
    assert_eq!(first.kind, QuestionKind::Input { schema: number() });
    let ids: Vec<&str> = asked.iter().map(|it| it.id.0.as_str()).collect();
    let call = first.call.as_ref().unwrap();
    assert_eq!(ids[0], format!("{call}/1"));
    assert_eq!(ids[6], format!("{call}/7"));
}

#[tokio::test(start_paused = true)]
async fn a_question_is_waited_for_within_the_calls_time_and_parks_nothing() {
    let mut tool = does(async |call: ToolInvocation| {
        let answer = call.asker.approval("never?").await;
        format!("{answer:?}")
    });
    tool.timeout = Some(Duration::from_secs(5));
    let mut bench = bench(tool, 1);
    bench.approver = Arc::new(Answers(Mutex::default()));
    let ran = bench.run().await;
    assert_eq!(results(&ran.events), ["Err(Cancelled)"]);
    assert_eq!(ran.took, Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn the_answer_to_a_running_call_takes_time_of_the_call_and_none_of_the_turn() {
    struct Slow;
    #[async_trait]
    impl Approver for Slow {
        async fn ask(&self, question: &Question) -> QuestionReply {
            tokio::time::sleep(Duration::from_secs(50)).await;
            QuestionReply::approved(question, "ada")
        }
    }
    let tool = does(async |call: ToolInvocation| {
        let answer = call.asker.approval("go on?").await;
        format!("{answer:?}")
    });
    let mut bench = bench(tool, 1);
    let slow = super::fakes::Beat::Sleep(50_000);
    bench.model.script.lock().unwrap()[1].insert(0, slow);
    bench.approver = Arc::new(Slow);
    bench.profile.limits.turn_timeout = Some(Duration::from_secs(90));
    let ran = bench.run().await;
    assert_eq!(results(&ran.events), ["Ok(())"]);
    assert_eq!(ran.outcome.stop_reason, rondo_types::StopReason::Complete);
    assert_eq!(ran.took, Duration::from_secs(100));
}

#[tokio::test(start_paused = true)]
async fn calls_beside_each_other_ask_one_after_another() {
    struct OneAtATime(Mutex<u32>);
    #[async_trait]
    impl Approver for OneAtATime {
        async fn ask(&self, question: &Question) -> QuestionReply {
            {
                let mut asking = self.0.lock().unwrap();
                assert_eq!(*asking, 0, "a question is shown already");
                *asking += 1;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            *self.0.lock().unwrap() -= 1;
            QuestionReply::approved(question, "ada")
        }
    }
    let tool = does(async |call: ToolInvocation| {
        let answer = call.asker.approval("go on?").await;
        format!("{answer:?}")
    });
    let mut bench = bench(tool, 3);
    bench.approver = Arc::new(OneAtATime(Mutex::default()));
    let ran = bench.run().await;
    assert_eq!(results(&ran.events), ["Ok(())"; 3]);
    assert_eq!(ran.took, Duration::from_secs(3));
}

/// Answers every question alike; without an answer, later.
struct Alike(Option<AnswerValue>, Mutex<Vec<Question>>);

#[async_trait]
impl Approver for Alike {
    async fn ask(&self, question: &Question) -> QuestionReply {
        self.1.lock().unwrap().push(question.clone());
        match self.0.clone() {
            Some(value) => QuestionReply::answered(question, "ada", value),
            None => QuestionReply::Later { expires: None },
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_of_a_running_call_never_parks_and_takes_only_its_kind_of_answer() {
    let denied = AnswerValue::Deny {
        reason: "no".to_owned(),
    };
    let waits = r#"Err(Denied { reason: "the question cannot be answered while the call runs" })"#;
    for (reply, expected) in [
        (Some(AnswerValue::Approve), "Ok(())"),
        (Some(denied), r#"Err(Denied { reason: "no" })"#),
        (None, waits),
    ] {
        let tool = does(async |call: ToolInvocation| {
            let value = call.asker.input("value?", json!({})).await;
            assert!(value.is_err(), "{value:?}");
            format!("{:?}", call.asker.approval("a\u{1b}[2Jb?").await)
        });
        let mut bench = bench(tool, 1);
        let approver = Arc::new(Alike(reply, Mutex::default()));
        bench.approver = Arc::clone(&approver) as Arc<dyn Approver>;
        let ran = bench.run().await;
        assert_eq!(results(&ran.events), [expected]);
        let answers = ran
            .events
            .iter()
            .filter(|event| matches!(event.body, EventBody::QuestionAnswered { .. }));
        assert_eq!(
            answers.count(),
            2,
            "a question that nobody answers is answered too"
        );
        let asked = approver.1.lock().unwrap();
        let prompts: Vec<_> = asked
            .iter()
            .map(|it| (it.prompt.as_str(), &it.kind))
            .collect();
        assert_eq!(prompts.len(), 2);
        let (prompt, kind) = prompts[1];
        assert!(
            prompt.starts_with("`work` is running and asks:\na"),
            "{prompt}"
        );
        assert!(!prompt.contains('\u{1b}') && *kind == QuestionKind::Permission);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_cannot_ask_without_end() {
    let tool = does(async |call: ToolInvocation| {
        let long = "x".repeat(QUESTION_BYTES_MAX + 1);
        let schema = json!({"description": long});
        let refused = [
            call.asker.approval(long.clone()).await,
            call.asker.input("number?", schema).await.map(drop),
        ];
        assert_eq!(
            refused,
            [Err(NotAnswered::TooMuch), Err(NotAnswered::TooMuch)]
        );
        let mut asked = 0;
        while call.asker.clone().approval("yes?").await.is_ok() {
            asked += 1;
        }
        format!("{asked}")
    });
    let mut bench = bench(tool, 1);
    bench.approver = Arc::new(Answers(Mutex::default()));
    let ran = bench.run().await;
    assert_eq!(results(&ran.events), [QUESTIONS_MAX.to_string().as_str()]);
}

#[tokio::test(start_paused = true)]
async fn what_a_call_says_and_asks_names_no_secret() {
    let tool = does(async |call: ToolInvocation| {
        call.progress
            .report(ToolProgress::message("with sk-12345678"));
        format!("{:?}", call.asker.approval("use sk-12345678?").await)
    });
    let secrets = Secrets::new(["sk-12345678".to_owned()]);
    let toolbox = Toolbox::new([Arc::new(tool) as Arc<dyn Tool>]).unwrap();
    let script = vec![calls(&[("work", "{}")]), answer("done")];
    let mut bench = Bench::new("default", script);
    bench
        .tools
        .push(toolbox.redacted(&secrets).get("work").unwrap());
    let approver = Arc::new(Alike(Some(AnswerValue::Approve), Mutex::default()));
    bench.approver = Arc::clone(&approver) as Arc<dyn Approver>;
    let ran = bench.run().await;
    let asked = approver.1.lock().unwrap();
    let expected = "`work` is running and asks:\nuse [redacted]?";
    assert_eq!(asked.first().unwrap().prompt, expected);
    let told = ran.events.iter().find_map(|event| match &event.body {
        EventBody::ToolProgress { progress, .. } => progress.message.clone(),
        _ => None,
    });
    assert_eq!(told.unwrap(), "with [redacted]");
}

#[tokio::test(start_paused = true)]
async fn progress_is_told_within_bounds_while_the_call_runs() {
    let tool = does(async |call: ToolInvocation| {
        call.progress.report(ToolProgress {
            done: Some(1.0),
            total: Some(f64::NAN),
            message: Some("é".repeat(ToolProgress::MESSAGE_BYTES_MAX)),
        });
        call.output.push("between".to_owned());
        call.progress.report(ToolProgress {
            done: Some(2.0),
            total: Some(4.0),
            message: None,
        });
        "done".to_owned()
    });
    let ran = bench(tool, 1).run().await;
    let told: Vec<_> = ran
        .events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::ToolProgress { progress, .. } => Some(progress.clone()),
            _ => None,
        })
        .collect();
    let expected = [
        ToolProgress {
            done: Some(1.0),
            total: None,
            message: Some("é".repeat(ToolProgress::MESSAGE_BYTES_MAX / 2)),
        },
        ToolProgress {
            done: Some(2.0),
            total: Some(4.0),
            message: None,
        },
    ];
    assert_eq!(told, expected);
}

#[tokio::test(start_paused = true)]
async fn a_call_gets_its_part_of_what_is_left_to_the_turn() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&seen);
    let mut tool = does(move |call: ToolInvocation| {
        notes.lock().unwrap().push((call.allowance, call.timeout));
        std::future::ready(String::new())
    });
    tool.timeout = Some(Duration::from_secs(9));
    let mut bench = bench(tool, 2);
    bench.approver = Arc::new(NobodyThere);
    bench.profile.limits.max_steps = 12;
    bench.profile.limits.max_tool_calls = Some(10);
    bench.profile.limits.max_tokens_total = None;
    bench.run().await;
    // One step is done, the next and the last are held back; two calls are taken.
    let allowance = RemainingLimits {
        steps: Some((12 - 1 - 2) / 2),
        calls: Some((10 - 2) / 2),
        tokens: None,
        cost: None,
        time: Some(Duration::from_secs(9)),
    };
    let expected = (allowance, allowance.time);
    assert_eq!(*seen.lock().unwrap(), [expected, expected]);
}

#[test]
fn an_allowance_only_narrows_limits() {
    let limits = crate::profile::builtin("default").unwrap().limits;
    assert_eq!(
        RemainingLimits::default().applied_to(limits.clone()),
        limits
    );
    let allowance = RemainingLimits {
        steps: Some(0),
        calls: Some(3),
        tokens: Some(5),
        cost: Some(NanoUsd(7)),
        time: Some(Duration::from_millis(1)),
    };
    assert!(allowance.is_spent());
    let narrowed = allowance.applied_to(limits.clone());
    assert_eq!(
        (
            narrowed.max_steps,
            narrowed.max_tool_calls,
            narrowed.max_tokens_total,
            narrowed.max_cost,
            narrowed.turn_timeout
        ),
        (
            1,
            Some(3),
            Some(5),
            Some(NanoUsd(7)),
            Some(Duration::from_millis(1))
        )
    );
    let wide = RemainingLimits {
        steps: Some(u32::MAX),
        time: Some(Duration::MAX),
        ..RemainingLimits::default()
    };
    let widened = wide.applied_to(limits.clone());
    assert_eq!(widened.max_steps, limits.max_steps);
    assert_eq!(
        widened.turn_timeout,
        limits.turn_timeout.or(Some(Duration::MAX))
    );
}
