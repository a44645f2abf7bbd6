//! Where traces of calls are sent, if anywhere.
use super::{
    Settings,
    check::{BadSetting, unused, within},
};
use adapters::otlp::Collector;

pub(super) fn validate(settings: &Settings) -> Result<(), BadSetting> {
    within("otlp_sample_ratio", settings.otlp_sample_ratio, 0.0..=1.0)?;
    settings.collector().map(drop)
}

impl Settings {
    /// `None`: nothing is traced.
    pub fn collector(&self) -> Result<Option<Collector>, BadSetting> {
        let endpoint = self.otlp_endpoint.trim();
        if endpoint.is_empty() {
            unused(&["otlp_endpoint"], [("otlp_headers", self.otlp_headers.expose())])?;
            return Ok(None);
        }
        let collector = Collector::new(endpoint, self.otlp_headers.expose());
        let bad = |(setting, why)| BadSetting(format!("{setting}: {why}"));
        collector.map(Some).map_err(bad)
    }

    /// What each trace says of this process. Names are OpenTelemetry's.
    pub fn traced_as(&self) -> Result<Vec<(&'static str, String)>, BadSetting> {
        let node = match self.node()? {
            Some(node) => Some(node.name),
            None => super::node::host_name(),
        };
        let mut known = vec![
            ("service.name", "callboard".to_owned()),
            ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
        ];
        known.extend(node.map(|name| ("service.instance.id", name)));
        Ok(known)
    }
}
