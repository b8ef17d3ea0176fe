//! In-memory OpenTelemetry exporters: spans and events of one test, metrics of the process.

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{LazyLock, Mutex, PoisonError},
};

use opentelemetry::{
    KeyValue, Value, global,
    logs::Severity,
    trace::{SpanId, TracerProvider},
};
use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use opentelemetry_sdk::{
    logs::{InMemoryLogExporter, SdkLogRecord, SdkLoggerProvider},
    metrics::{
        InMemoryMetricExporter, SdkMeterProvider,
        data::{AggregatedMetrics, Histogram, Metric, MetricData, Sum},
    },
    trace::{InMemorySpanExporter, SdkTracerProvider, SpanData},
};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::SubscriberExt;

static METERS: LazyLock<Mutex<(SdkMeterProvider, InMemoryMetricExporter)>> = LazyLock::new(|| {
    let exporter = InMemoryMetricExporter::default();
    let provider = SdkMeterProvider::builder().with_periodic_exporter(exporter.clone()).build();
    global::set_meter_provider(provider.clone());
    Mutex::new((provider, exporter))
});

/// The subscriber of this thread.
pub(crate) struct Recorder {
    traces: SdkTracerProvider,
    spans: InMemorySpanExporter,
    logs: SdkLoggerProvider,
    events: InMemoryLogExporter,
    _guard: DefaultGuard,
}

impl Recorder {
    pub(crate) fn start() -> Self {
        LazyLock::force(&METERS);
        let (spans, events) = (InMemorySpanExporter::default(), InMemoryLogExporter::default());
        let traces = SdkTracerProvider::builder().with_simple_exporter(spans.clone()).build();
        let logs = SdkLoggerProvider::builder().with_simple_exporter(events.clone()).build();
        let layer = tracing_opentelemetry::layer()
            .with_tracer(traces.tracer("test"))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false);
        let bridge = OpenTelemetryTracingBridge::new(&logs);
        let subscriber = tracing_subscriber::registry().with(layer).with(bridge);
        let guard = tracing::subscriber::set_default(subscriber);
        Self { traces, spans, logs, events, _guard: guard }
    }

    /// Returns the spans that have ended.
    pub(crate) fn spans(&self) -> Spans {
        self.traces.force_flush().expect("flushes");
        Spans(self.spans.get_finished_spans().expect("readable"))
    }

    /// Returns the events of this name.
    pub(crate) fn events(&self, name: &str) -> Vec<SdkLogRecord> {
        self.logs.force_flush().expect("flushes");
        let events = self.events.get_emitted_logs().expect("readable").into_iter();
        events.map(|event| event.record).filter(|event| event.event_name() == Some(name)).collect()
    }
}

pub(crate) struct Spans(pub(crate) Vec<SpanData>);

impl Spans {
    /// Returns the only span of this name.
    pub(crate) fn one(&self, name: &str) -> &SpanData {
        let all = self.all(name);
        assert_eq!(all.len(), 1, "spans '{name}' among:\n{}", self.tree());
        all[0]
    }

    pub(crate) fn all(&self, name: &str) -> Vec<&SpanData> {
        self.0.iter().filter(|span| span.name == name).collect()
    }

    /// Returns the name of the parent span.
    pub(crate) fn above(&self, span: &SpanData) -> Option<&str> {
        self.0.iter().find(|s| s.span_context.span_id() == span.parent_span_id).map(|s| &*s.name)
    }

    /// Returns all names, indented by depth, in the order in which the spans began.
    pub(crate) fn tree(&self) -> String {
        let mut text = String::new();
        let known = |id| self.0.iter().any(|span| span.span_context.span_id() == id);
        for root in self.0.iter().filter(|span| !known(span.parent_span_id)) {
            self.branch(root, 0, &mut text);
        }
        text
    }

    fn branch(&self, span: &SpanData, depth: usize, text: &mut String) {
        writeln!(text, "{:depth$}{}", "", span.name).expect("a String");
        let id = span.span_context.span_id();
        let mut below: Vec<_> = self.0.iter().filter(|s| s.parent_span_id == id && id != SpanId::INVALID).collect();
        below.sort_by_key(|span| span.start_time);
        below.into_iter().for_each(|span| self.branch(span, depth + 2, text));
    }
}

/// Returns the value of an attribute, as text.
pub(crate) fn attribute(span: &SpanData, name: &str) -> Option<String> {
    let found: Vec<_> = span.attributes.iter().filter(|kv| kv.key.as_str() == name).collect();
    assert!(found.len() < 2, "'{name}' stands twice on '{}': {found:?}", span.name);
    found.first().map(|kv| kv.value.to_string())
}

/// Returns the value of a numeric attribute; 0 if it is missing.
pub(crate) fn number(span: &SpanData, name: &str) -> i64 {
    span.attributes.iter().find(|kv| kv.key.as_str() == name).map_or(0, |kv| match kv.value {
        Value::I64(number) => number,
        ref other => panic!("'{name}' is {other:?}"),
    })
}

/// Returns the names of a span's attributes, sorted.
pub(crate) fn names(span: &SpanData) -> Vec<&str> {
    let mut names: Vec<_> = span.attributes.iter().map(|kv| kv.key.as_str()).collect();
    names.sort_unstable();
    names
}

/// Returns an event's attributes, as text.
pub(crate) fn fields(event: &SdkLogRecord) -> BTreeMap<String, String> {
    let text = |value: &opentelemetry::logs::AnyValue| match value {
        opentelemetry::logs::AnyValue::String(text) => text.to_string(),
        opentelemetry::logs::AnyValue::Int(number) => number.to_string(),
        other => format!("{other:?}"),
    };
    event.attributes_iter().map(|(key, value)| (key.to_string(), text(value))).collect()
}

pub(crate) fn severity(event: &SdkLogRecord) -> Severity {
    event.severity_number().expect("set")
}

/// One series of a metric.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) unit: String,
    pub(crate) labels: BTreeMap<String, String>,
    /// Number of measurements; 1 for a counter.
    pub(crate) count: u64,
    pub(crate) sum: f64,
    pub(crate) bounds: Vec<f64>,
}

/// Returns the series with this label that were measured so far: models and agents distinguish the
/// tests of one process.
pub(crate) fn measured(label: &str, value: &str) -> Vec<Series> {
    let meters = METERS.lock().unwrap_or_else(PoisonError::into_inner);
    meters.1.reset();
    meters.0.force_flush().expect("flushes");
    let exported = meters.1.get_finished_metrics().expect("readable");
    let newest = exported.last().expect("something was measured");
    let metrics = newest.scope_metrics().flat_map(opentelemetry_sdk::metrics::data::ScopeMetrics::metrics);
    let all = metrics.flat_map(series);
    all.filter(|series| series.labels.get(label).is_some_and(|is| is == value)).collect()
}

fn series(metric: &Metric) -> Vec<Series> {
    match metric.data() {
        AggregatedMetrics::F64(MetricData::Histogram(histogram)) => of_histogram(metric, histogram, |sum| sum),
        AggregatedMetrics::U64(MetricData::Histogram(histogram)) => of_histogram(metric, histogram, |sum| sum as f64),
        AggregatedMetrics::U64(MetricData::Sum(sum)) => of_sum(metric, sum),
        other => panic!("{} is {other:?}", metric.name()),
    }
}

fn of_histogram<T: Copy>(metric: &Metric, histogram: &Histogram<T>, to_f64: impl Fn(T) -> f64) -> Vec<Series> {
    let one = |point: &opentelemetry_sdk::metrics::data::HistogramDataPoint<T>| Series {
        name: metric.name().to_owned(),
        unit: metric.unit().to_owned(),
        labels: labels(point.attributes()),
        count: point.count(),
        sum: to_f64(point.sum()),
        bounds: point.bounds().collect(),
    };
    histogram.data_points().map(one).collect()
}

fn of_sum(metric: &Metric, sum: &Sum<u64>) -> Vec<Series> {
    assert!(sum.is_monotonic());
    let one = |point: &opentelemetry_sdk::metrics::data::SumDataPoint<u64>| Series {
        name: metric.name().to_owned(),
        unit: metric.unit().to_owned(),
        labels: labels(point.attributes()),
        count: 1,
        sum: point.value() as f64,
        bounds: Vec::new(),
    };
    sum.data_points().map(one).collect()
}

fn labels<'a>(of: impl Iterator<Item = &'a KeyValue>) -> BTreeMap<String, String> {
    of.map(|kv| (kv.key.to_string(), kv.value.to_string())).collect()
}
