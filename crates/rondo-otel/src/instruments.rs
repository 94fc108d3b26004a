//! The histograms.

use crate::convention;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Histogram, Meter};
use rondo_types::Usage;

/// Bounds of the buckets, as the conventions advise.
const TOKENS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
const SECONDS: [f64; 14] = [
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];
const TURN_SECONDS: [f64; 13] = [
    0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6,
];

/// The histograms.
#[derive(Debug)]
pub(crate) struct Instruments {
    tokens: Histogram<u64>,
    pub(crate) operation: Histogram<f64>,
    pub(crate) first_chunk: Histogram<f64>,
    pub(crate) next_chunk: Histogram<f64>,
    pub(crate) agent: Histogram<f64>,
    pub(crate) tool: Histogram<f64>,
}

impl Instruments {
    pub(crate) fn new(meter: &Meter) -> Self {
        let client = |name, what| seconds(meter, name, what, &SECONDS);
        Self {
            tokens: meter
                .u64_histogram("gen_ai.client.token.usage")
                .with_unit("{token}")
                .with_description("Number of input and output tokens used.")
                .with_boundaries(TOKENS.to_vec())
                .build(),
            operation: client(
                "gen_ai.client.operation.duration",
                "GenAI operation duration.",
            ),
            first_chunk: client(
                "gen_ai.client.operation.time_to_first_chunk",
                "Time to receive the first chunk of a streamed reply.",
            ),
            next_chunk: client(
                "gen_ai.client.operation.time_per_output_chunk",
                "Time between the chunks of a streamed reply.",
            ),
            agent: seconds(
                meter,
                "gen_ai.invoke_agent.duration",
                "The duration of a turn.",
                &TURN_SECONDS,
            ),
            tool: client(
                "gen_ai.execute_tool.duration",
                "The duration of a single tool execution.",
            ),
        }
    }

    /// Records the tokens of one reply.
    pub(crate) fn record_usage(&self, usage: Usage, attributes: &[KeyValue]) {
        for (kind, count) in [("input", usage.input), ("output", usage.output)] {
            let mut attributes = attributes.to_vec();
            attributes.push(KeyValue::new(convention::TOKEN_TYPE, kind));
            self.tokens.record(count, &attributes);
        }
    }
}

fn seconds(
    meter: &Meter,
    name: &'static str,
    what: &'static str,
    bounds: &[f64],
) -> Histogram<f64> {
    meter
        .f64_histogram(name)
        .with_unit("s")
        .with_description(what)
        .with_boundaries(bounds.to_vec())
        .build()
}
