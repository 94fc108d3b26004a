//! Seeded faults: whatever the model and the tools do, the turn ends in time, tells its listener,
//! and pairs every call. A failure names its seed.

use super::fakes::{Act, Beat, Bench, answer, calls, finished, text};
use rondo_types::{ErrorClass, FinishReason, ModelEvent};
use std::time::Duration;
use tokio::time::sleep;

/// SplitMix64: small, seeded, the same everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    fn reply(&mut self) -> Vec<Beat> {
        let mut beats = match self.roll(6) {
            0 => answer("an answer"),
            1 => vec![finished(FinishReason::Stop)],
            2 => vec![Beat::Event(text("only text"))],
            3 => vec![Beat::Event(ModelEvent::PromptBlocked {
                reason: "SAFETY".into(),
            })],
            _ => {
                let n = self.roll(50);
                let arguments = format!(r#"{{"n":{n}}}"#);
                let names = ["look", "act", "gone"];
                let name = names[usize::try_from(self.roll(3)).unwrap()];
                calls(&[(name, &arguments), ("look", "{}"), ("act", "[")])
            }
        };
        for _ in 0..self.roll(3) {
            let at = usize::try_from(self.roll(beats.len() as u64 + 1)).unwrap();
            beats.insert(at, self.fault());
        }
        beats
    }

    fn fault(&mut self) -> Beat {
        let classes = [
            ErrorClass::Network,
            ErrorClass::Server,
            ErrorClass::RateLimited,
            ErrorClass::Protocol,
            ErrorClass::Auth,
        ];
        match self.roll(4) {
            0 => Beat::Hang,
            1 if self.roll(4) == 0 => Beat::Event(ModelEvent::Queued),
            1 => Beat::Sleep(self.roll(100_000)),
            2 => Beat::Sleep(self.roll(50)),
            _ => Beat::Fail(classes[usize::try_from(self.roll(5)).unwrap()]),
        }
    }

    fn acts(&mut self) -> Vec<Act> {
        let mut act = || match self.roll(6) {
            0 => Act::SleepThenReturn(self.roll(200_000)),
            1 => Act::UntilCancelled,
            2 => Act::Stubborn,
            3 => Act::Panic,
            _ => Act::Return,
        };
        (0..8).map(|_| act()).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn faults_of_any_kind_end_in_time_with_a_result() {
    let profiles = ["python", "stream", "react", "hub", "shell", "default"];
    for seed in 0..600_u64 {
        let mut dice = Dice(seed);
        let profile = profiles[usize::try_from(dice.roll(6)).unwrap()];
        let script = (0..dice.roll(8)).map(|_| dice.reply()).collect();
        let mut bench = Bench::new(profile, script);
        for name in ["f1", "f2"].into_iter().take(seed as usize % 3) {
            bench = bench.fallback(name, (0..seed % 5).map(|_| dice.reply()).collect());
        }
        let deadline = Duration::from_millis(1_000 + dice.roll(120_000));
        bench.profile.limits.turn_timeout = Some(deadline);
        bench.model.streaming = dice.roll(4) > 0;
        let grace = bench.profile.limits.cancel_grace;
        let (look, act) = (dice.acts(), dice.acts());
        let cancel = (dice.roll(3) == 0).then(|| Duration::from_millis(dice.roll(60_000)));
        let (ran, model) = bench
            .tool("look", true, &look)
            .tool("act", false, &act)
            .run_with(|handle| async move {
                if let Some(after) = cancel {
                    sleep(after).await;
                    handle.cancel();
                }
            })
            .await;
        let bound = deadline + grace * 2;
        let cancelled_after = cancel.unwrap_or_default();
        assert!(
            ran.took <= bound.max(cancelled_after),
            "SEED={seed} {profile}: took {:?} of {bound:?}",
            ran.took
        );
        for request in model.requests.lock().unwrap().iter() {
            assert!(crate::pairing::is_paired(&request.messages), "SEED={seed}");
        }
    }
}
