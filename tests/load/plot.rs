//! Curves of a run, as SVG: with `--plot FILE`. Whatever service the run starts is looked at four times a second, from outside: its
//! process, and what its `/metrics` say.
use super::service::{memory_mib, times};
use plotters::prelude::*;
use std::{
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// `None`: nobody wants a picture.
static RECORDING: Mutex<Option<Recording>> = Mutex::new(None);

struct Recording {
    began: Instant,
    samples: Vec<Sample>,
    /// Latencies of a part of the run, in milliseconds, by percentile.
    latencies: Vec<(String, Vec<f64>)>,
    /// Posts a second of the same client without storage.
    raw_limit: Option<f64>,
}

/// What was seen at a moment.
#[derive(Clone, Copy, Default)]
struct Sample {
    /// Seconds since the run began.
    at: f64,
    /// A service that is started counts anew.
    service: usize,
    resident_mib: f64,
    cpu_seconds: f64,
    events: f64,
    deliveries: f64,
    deliveries_begun: f64,
    calls_live: f64,
}

const EVERY: Duration = Duration::from_millis(250);

/// From now on. To be called before the run begins.
pub fn begin() {
    *recording() = Some(Recording {
        began: Instant::now(),
        samples: Vec::new(),
        latencies: Vec::new(),
        raw_limit: None,
    });
}

fn recording() -> MutexGuard<'static, Option<Recording>> {
    RECORDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A service has begun at this address (`host:port`), in the process of that id or in this one. It is looked at until it does not answer.
pub fn watch(address: &str, process: Option<u32>) {
    let (address, process) = (
        address.to_owned(),
        process.map_or("self".to_owned(), |id| id.to_string()),
    );
    let Some(began) = recording().as_ref().map(|recording| recording.began) else {
        return;
    };
    std::thread::spawn(move || {
        let service = recording()
            .as_ref()
            .and_then(|recording| recording.samples.last())
            .map_or(0, |last| last.service + 1);
        while let Some(metrics) = metrics(&address) {
            let [user, system, ..] = times(&process);
            let sample = Sample {
                at: began.elapsed().as_secs_f64(),
                service,
                resident_mib: memory_mib(&process, "VmRSS"),
                cpu_seconds: user + system,
                events: sum(&metrics, "callboard_events_total"),
                deliveries: sum(&metrics, "callboard_deliveries_total"),
                deliveries_begun: sum(&metrics, "callboard_deliveries_begun_total"),
                calls_live: sum(&metrics, "callboard_calls_live"),
            };
            if let Some(recording) = recording().as_mut() {
                recording.samples.push(sample);
            }
            std::thread::sleep(EVERY);
        }
    });
}

/// How late what arrived was in one part of the run: 101 values, in microseconds, the nth of them the nth percentile.
pub fn latencies(part: &str, percentiles_us: &[u64]) {
    if let Some(recording) = recording().as_mut() {
        let millis = percentiles_us.iter().map(|micros| *micros as f64 / 1000.0).collect();
        recording.latencies.push((part.to_owned(), millis));
    }
}

pub fn raw_limit(per_second: f64) {
    if let Some(recording) = recording().as_mut() {
        recording.raw_limit = Some(per_second);
    }
}

fn metrics(address: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
    let request = format!("GET /metrics HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    Some(String::from_utf8_lossy(&answer).into_owned())
}

/// Over all its labels.
fn sum(metrics: &str, name: &str) -> f64 {
    let of_it = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
    let values = metrics
        .lines()
        .filter(of_it)
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    values.sum()
}

/// A curve: its name, and its points.
type Curve = (String, Vec<(f64, f64)>);

/// Writes what was seen. Does nothing without [`begin`].
pub fn write(title: &str, path: &Path) {
    let Some(recording) = recording().take() else { return };
    let panels = [
        ("per second", "seconds", recording.throughput()),
        ("waiting", "seconds", recording.waiting()),
        (
            "resident memory, MiB",
            "seconds",
            recording.of_samples("memory", |sample| sample.resident_mib),
        ),
        (
            "cores at work",
            "seconds",
            recording.rates("cores", |sample| sample.cpu_seconds),
        ),
        ("latency, ms", "percentile", recording.distribution()),
    ];
    let panels: Vec<_> = panels
        .into_iter()
        .filter(|(.., curves)| curves.iter().any(|(_, points)| points.iter().any(|(_, y)| *y > 0.0)))
        .collect();
    let height = 240 * u32::try_from(panels.len().max(1)).expect("a few panels");
    let root = SVGBackend::new(path, (900, height)).into_drawing_area();
    root.fill(&WHITE).expect("a file");
    for (area, (what, along, curves)) in root.split_evenly((panels.len().max(1), 1)).iter().zip(&panels) {
        panel(area, &format!("{title}: {what}"), along, curves);
    }
    root.present().expect("a file");
    println!("curves in {}", path.display());
}

fn panel(area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>, caption: &str, along: &str, curves: &[Curve]) {
    let points = || curves.iter().flat_map(|(_, points)| points);
    let (left, right) = points().fold((f64::MAX, 0.0_f64), |(left, right), (x, _)| {
        (left.min(*x), right.max(*x))
    });
    let top = points().fold(0.0_f64, |top, (_, y)| top.max(*y)) * 1.05;
    let mut chart = ChartBuilder::on(area)
        .caption(caption, ("sans-serif", 15))
        .margin(8)
        .x_label_area_size(32)
        .y_label_area_size(64)
        .build_cartesian_2d(left..right, 0.0..top)
        .expect("axes");
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc(along)
        .draw()
        .expect("a mesh");
    for (nth, (name, points)) in curves.iter().enumerate() {
        let color = Palette99::pick(nth).to_rgba();
        let drawn = chart.draw_series(LineSeries::new(points.iter().copied(), color.stroke_width(2)));
        drawn
            .expect("a curve")
            .label(name.clone())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.2))
        .draw()
        .expect("a legend");
}

impl Recording {
    fn throughput(&self) -> Vec<Curve> {
        let mut curves = self.rates("events", |sample| sample.events);
        curves.extend(self.rates("deliveries", |sample| sample.deliveries));
        let ends = self.samples.first().zip(self.samples.last());
        if let (Some(limit), Some((first, last))) = (self.raw_limit, ends) {
            curves.push(("raw limit".into(), vec![(first.at, limit), (last.at, limit)]));
        }
        curves
    }

    fn waiting(&self) -> Vec<Curve> {
        let mut curves = self.of_samples("deliveries", |sample| {
            (sample.deliveries_begun - sample.deliveries).max(0.0)
        });
        curves.extend(self.of_samples("calls", |sample| sample.calls_live));
        curves
    }

    fn of_samples(&self, name: &str, value: fn(&Sample) -> f64) -> Vec<Curve> {
        let points = self.samples.iter().map(|sample| (sample.at, value(sample)));
        vec![(name.to_owned(), points.collect())]
    }

    /// By how much it grows in a second, from one look to the next.
    fn rates(&self, name: &str, value: fn(&Sample) -> f64) -> Vec<Curve> {
        let pairs = self
            .samples
            .windows(2)
            .filter(|pair| pair[0].service == pair[1].service);
        let points = pairs.map(|pair| {
            let seconds = (pair[1].at - pair[0].at).max(0.001);
            (pair[1].at, ((value(&pair[1]) - value(&pair[0])) / seconds).max(0.0))
        });
        vec![(name.to_owned(), points.collect())]
    }

    fn distribution(&self) -> Vec<Curve> {
        let curve = |(part, millis): &(String, Vec<f64>)| {
            let points = millis
                .iter()
                .enumerate()
                .map(|(percentile, millis)| (percentile as f64, *millis));
            (part.clone(), points.collect())
        };
        self.latencies.iter().map(curve).collect()
    }
}
