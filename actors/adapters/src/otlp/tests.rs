use super::*;
use entities::values::Moment;

#[test]
fn spans_go_to_the_path_that_collectors_have() {
    for (endpoint, url) in [
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
        ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
        (
            "https://otlp.example.com/otlp",
            "https://otlp.example.com/otlp/v1/traces",
        ),
        ("https://api.example.com/v1/traces", "https://api.example.com/v1/traces"),
    ] {
        assert_eq!(Collector::new(endpoint, "").unwrap().url.as_str(), url);
    }
    for endpoint in [
        "127.0.0.1:4318",
        "grpc://127.0.0.1:4317",
        "https://u:p@example.com",
        "https://x/?key=1",
    ] {
        let refused = Collector::new(endpoint, "").err();
        assert!(
            refused.is_some_and(|(setting, _)| setting == "otlp_endpoint"),
            "{endpoint}"
        );
    }
}

#[test]
fn headers_are_read_as_other_exporters_read_them_and_never_repeated() {
    let read = Collector::new(
        "http://x",
        "x-honeycomb-team=hunter2, Authorization=Basic%20aHVudGVyMg==,",
    )
    .unwrap();
    assert_eq!(read.headers["x-honeycomb-team"], "hunter2");
    assert_eq!(read.headers["authorization"], "Basic aHVudGVyMg==");
    assert!(read.headers.values().all(HeaderValue::is_sensitive));
    for bad in [
        "hunter2",
        "a b=hunter2",
        "x=hunter2%",
        "x=hunter2%zz",
        "x=hunter2%0a",
        "=hunter2",
    ] {
        let (setting, why) = Collector::new("http://x", bad).err().unwrap();
        assert!(setting == "otlp_headers" && !why.contains("hunter2"), "{bad}: {why}");
    }
}

#[tokio::test]
async fn spans_are_taken_some_at_a_time_until_the_last_tracer_is_gone() {
    let (tracer, mut intake) = tracer::Tracer::on(1.0);
    let place = tracer::Place {
        trace_id: 1,
        parent: None,
        sampled: true,
    };
    for _ in 0..BATCH + 1 {
        tracer.record(place.span(1, "x", Moment::from_millis(0), Duration::ZERO));
    }
    drop(tracer);
    let mut sizes = Vec::new();
    let mut batch = Vec::new();
    while let Some(asked) = gather(&mut intake, &mut batch).await {
        assert!(asked.is_none());
        sizes.push(std::mem::take(&mut batch).len());
    }
    assert_eq!(sizes, [BATCH, 1]);
}
