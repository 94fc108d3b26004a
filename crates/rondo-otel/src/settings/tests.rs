//! Tests: settings read from `OTEL_*` variables.

use super::*;

fn read(variables: &[(&str, &str)]) -> Result<Option<Settings>, SettingsError> {
    Settings::from_lookup(|name| {
        let found = variables.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

fn some(variables: &[(&str, &str)]) -> Settings {
    read(variables).unwrap().expect("there are settings")
}

const HERE: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/");

#[test]
fn nothing_is_sent_unless_an_address_is_given() {
    assert!(read(&[]).unwrap().is_none());
    assert!(read(&[("OTEL_SERVICE_NAME", "x")]).unwrap().is_none());
    assert!(
        read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")])
            .unwrap()
            .is_none()
    );
    let disabled = [HERE, ("OTEL_SDK_DISABLED", "true")];
    assert!(read(&disabled).unwrap().is_none());
}

#[test]
fn a_signals_own_address_is_used_as_it_is() {
    let settings = some(&[
        HERE,
        (
            "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
            "http://m:9/otlp/metrics",
        ),
    ]);
    assert_eq!(settings.traces.unwrap().url, "http://c:4318/v1/traces");
    assert_eq!(settings.metrics.unwrap().url, "http://m:9/otlp/metrics");
    assert_eq!(settings.timeout, TIMEOUT);
    assert!(!settings.content);
}

#[test]
fn a_signal_can_be_left_out() {
    let settings = some(&[HERE, ("OTEL_METRICS_EXPORTER", "none")]);
    assert!(settings.metrics.is_none() && settings.traces.is_some());
}

#[test]
fn headers_and_resource_attributes_are_decoded() {
    let settings = some(&[
        HERE,
        (
            "OTEL_EXPORTER_OTLP_HEADERS",
            "authorization=Bearer%20t0k, x=1",
        ),
        ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "x=2"),
        ("OTEL_RESOURCE_ATTRIBUTES", "service.name=mine,team=a%2Cb"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "250"),
    ]);
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let general = vec![pair("authorization", "Bearer t0k"), pair("x", "1")];
    assert_eq!(settings.metrics.as_ref().unwrap().headers, general);
    let traces = settings.traces.as_ref().unwrap();
    assert_eq!(traces.headers.last(), Some(&pair("x", "2")));
    assert_eq!(settings.service_name, "mine");
    assert_eq!(settings.resource, [pair("team", "a,b")]);
    assert_eq!(settings.timeout, Duration::from_millis(250));
    assert!(!format!("{settings:?}").contains("t0k"));
}

#[test]
fn content_is_written_only_when_asked_for() {
    let name = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";
    for (value, wanted) in [
        ("true", true),
        ("SPAN_ONLY", true),
        ("SPAN_AND_EVENT", true),
        ("EVENT_ONLY", false),
        ("NO_CONTENT", false),
        ("false", false),
    ] {
        assert_eq!(some(&[HERE, (name, value)]).content, wanted, "{value}");
    }
}

#[test]
fn no_time_for_a_delivery_means_no_limit_and_the_longest_has_a_bound() {
    for (millis, expected) in [
        ("0", TIMEOUT_MAX),
        ("1", Duration::from_millis(1)),
        ("599999", Duration::from_millis(599_999)),
        ("600000", TIMEOUT_MAX),
        ("600001", TIMEOUT_MAX),
        ("18446744073709551615", TIMEOUT_MAX),
    ] {
        let settings = some(&[HERE, ("OTEL_EXPORTER_OTLP_TIMEOUT", millis)]);
        assert_eq!(settings.timeout, expected, "{millis}");
    }
}

#[test]
fn what_cannot_be_followed_is_said_without_the_value() {
    for (name, value) in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc-secret"),
        ("OTEL_TRACES_EXPORTER", "zipkin-secret"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "secret"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "secret"),
    ] {
        let error = read(&[HERE, (name, value)]).unwrap_err().to_string();
        assert!(error.contains(name) && !error.contains("secret"), "{error}");
    }
}

#[test]
fn only_another_form_of_these_conventions_is_unknown() {
    assert_eq!(unknown_opt_in("gen_ai_latest_experimental"), None);
    assert_eq!(unknown_opt_in("http/dup, gen_ai_latest_experimental"), None);
    assert_eq!(unknown_opt_in("http,gen_ai"), Some("gen_ai"));
}
