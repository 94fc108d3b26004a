//! Whatever a model would like to say, what comes out fits the schema of the tool it calls.

use crate::support::{ask, request, tool, weights};
use proptest::prelude::*;
use rondo_local::{Engine, Gguf, LocalError, LocalModel, Vocabulary};
use rondo_types::{Message, ModelEvent};
use serde_json::{Map, Value, json};
use std::sync::{Arc, OnceLock};

/// An engine that says anything: its logits are noise, so that every branch of a grammar is taken.
struct Noise {
    vocabulary: Arc<Vocabulary>,
    /// Tokens that close something, which noise alone would hardly ever pick.
    closing: Arc<Vec<u32>>,
    sequence: Vec<u32>,
    seed: u64,
}

impl Engine for Noise {
    fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    fn context_tokens(&self) -> usize {
        4_096
    }

    fn sequence(&self) -> &[u32] {
        &self.sequence
    }

    fn truncate(&mut self, length: usize) {
        self.sequence.truncate(length);
    }

    fn extend(&mut self, tokens: &[u32]) -> Result<Vec<f32>, LocalError> {
        self.sequence.extend_from_slice(tokens);
        let mut state = self.seed ^ self.sequence.len() as u64;
        let mut logits: Vec<f32> = (0..self.vocabulary.len())
            .map(|_| noise(&mut state))
            .collect();
        for token in self.closing.iter() {
            logits[*token as usize] += noise(&mut state) * 4.0;
        }
        Ok(logits)
    }

    fn fork(&self) -> Result<Box<dyn Engine>, LocalError> {
        Ok(Box::new(Self {
            vocabulary: Arc::clone(&self.vocabulary),
            closing: Arc::clone(&self.closing),
            sequence: self.sequence.clone(),
            seed: self.seed,
        }))
    }
}

/// A number from 0 to 1.
fn noise(state: &mut u64) -> f32 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*state >> 40) as f32 / (1_u64 << 24) as f32
}

fn engine(seed: u64) -> Noise {
    static TABLES: OnceLock<(Arc<Vocabulary>, Arc<Vec<u32>>)> = OnceLock::new();
    let (vocabulary, closing) = TABLES.get_or_init(|| {
        let vocabulary = Vocabulary::read(&Gguf::open(&weights()).unwrap()).unwrap();
        let closes = |token: &u32| {
            let bytes = vocabulary.decode(&[*token]);
            bytes.first().is_some_and(|byte| b"\"]},".contains(byte))
        };
        let tokens = 0..u32::try_from(vocabulary.len()).unwrap();
        let closing: Vec<u32> = tokens.filter(closes).collect();
        (vocabulary, Arc::new(closing))
    });
    Noise {
        vocabulary: Arc::clone(vocabulary),
        closing: Arc::clone(closing),
        sequence: Vec::new(),
        seed,
    }
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        (1_u64..40).prop_map(|most| json!({"type": "string", "maxLength": most})),
        (-50_i64..50, 0_i64..100).prop_map(
            |(low, span)| json!({"type": "integer", "minimum": low, "maximum": low + span})
        ),
        Just(json!({"type": "boolean"})),
        Just(json!({"type": ["integer", "null"], "minimum": 0, "maximum": 9})),
        prop::collection::hash_set("[a-zé\"\\\\ ]{1,8}", 1..4)
            .prop_map(|values| json!({"enum": values.into_iter().collect::<Vec<_>>()})),
    ]
}

fn schema() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            (inner.clone(), 0_u64..2).prop_map(|(items, least)| {
                json!({"type": "array", "items": items, "minItems": least, "maxItems": 3})
            }),
            object_of(inner),
        ]
    })
}

fn object_of(values: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let property = ("[a-z_]{1,6}", values, any::<bool>());
    prop::collection::vec(property, 0..4).prop_map(|properties| {
        let required: Vec<&str> = properties
            .iter()
            .filter(|(_, _, required)| *required)
            .map(|(name, _, _)| name.as_str())
            .collect();
        let required: std::collections::BTreeSet<_> = required.into_iter().collect();
        let known: Map<String, Value> = properties
            .iter()
            .map(|(name, schema, _)| (name.clone(), schema.clone()))
            .collect();
        json!({
            "type": "object",
            "properties": known,
            "required": required,
            "additionalProperties": false
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn calls_fit_the_schema_of_their_tool(parameters in object_of(schema()), seed in any::<u64>()) {
        let model = LocalModel::with_engine("noise", 4_096, move || Ok(Box::new(engine(seed)))).unwrap();
        let tools = vec![tool("first", &parameters), tool("second", &json!({"type": "object"}))];
        let events = ask(&model, request(vec![Message::user("Go on.")], tools)).unwrap();
        let mut called = None;
        for event in &events {
            match event {
                ModelEvent::ToolCallStarted { name, .. } => called = Some(name.clone()),
                ModelEvent::ToolCallDelta { arguments, .. } => {
                    let value: Value = serde_json::from_str(arguments).unwrap();
                    prop_assert!(value.is_object());
                    if called.as_deref() == Some("first") {
                        prop_assert!(jsonschema::is_valid(&parameters, &value), "{value} {parameters}");
                    }
                }
                _ => {}
            }
        }
        let said = events.iter().any(|event| matches!(event, ModelEvent::TextDelta { .. }));
        prop_assert!(said || matches!(called.as_deref(), Some("first" | "second")), "{events:?}");
        let finished = matches!(events.last(), Some(ModelEvent::Finished { .. }));
        prop_assert!(finished, "{events:?}");
    }
}

#[test]
fn without_tools_there_is_only_an_answer() {
    for seed in 0..8 {
        let model =
            LocalModel::with_engine("noise", 4_096, move || Ok(Box::new(engine(seed)))).unwrap();
        let events = ask(&model, request(vec![Message::user("Go on.")], Vec::new())).unwrap();
        let is_call = |event: &ModelEvent| matches!(event, ModelEvent::ToolCallStarted { .. });
        assert!(!events.iter().any(is_call));
        assert!(
            events
                .iter()
                .any(|event| matches!(event, ModelEvent::TextDelta { .. }))
        );
    }
}
