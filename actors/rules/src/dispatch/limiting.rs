//! What keeps a running campaign from dialling faster, as its outlook says.
use schemars::JsonSchema;
use serde::Serialize;

/// What keeps a running campaign from dialling faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitingFactor {
    /// Its own `pacing.calls_per_second`.
    Rate,
    /// The workspace's calls per second.
    WorkspaceRate,
    /// The trunk takes fewer calls than it should, or none: it is down, paused, or all its channels are in use.
    Trunk,
    /// The workspace's limit of concurrent calls.
    Concurrency,
    /// Its own `pacing.max_concurrency`.
    CampaignConcurrency,
    /// As many of its messages as allowed are on their way to the provider or the mail server.
    Provider,
    /// All contacts left are in their quiet hours.
    QuietHours,
    /// All contacts left wait for a time: a retry, a cap, a `not_before`.
    Waiting,
    /// Its `caps.campaign_per_day`.
    DailyCap,
    /// Its `caps.budget_cents`.
    Budget,
    /// So many of its calls were answered and abandoned that the law's limit is near.
    Abandonment,
    /// A register that the law wants to be looked into is missing, or older than it may be.
    Register,
    /// None of its numbers may be shown there, or nobody who takes opt-outs answers them.
    CallerId,
    /// What the law wants to be said cannot be: who the workspace is, or in the agent's language.
    Disclosure,
    /// The `max_spend_cents_per_day` or `max_calls_per_minute` of the API key that started it.
    ApiKey,
    Credits,
    Suspension,
    /// The operator has paused all dispatch.
    OperatorPause,
    /// The service's clock is in doubt.
    Clock,
    /// Everybody is being called or has been.
    NoneLeft,
}
