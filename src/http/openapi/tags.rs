//! The sections of the document.
use serde_json::{Value, json};

pub(super) fn all() -> Vec<Value> {
    let tags = TAGS.iter();
    tags.map(|(name, about)| json!({ "name": name, "description": about }))
        .collect()
}

/// In the order in which a newcomer needs them.
const TAGS: &[(&str, &str)] = &[
    (
        "agents",
        "Who speaks: instructions, a voice and what decides the words.",
    ),
    (
        "campaigns",
        "A list of contacts that an agent works through, with pacing and retries.",
    ),
    ("sessions", "One call each, placed by you or by a campaign."),
    (
        "rooms",
        "Links by which a person talks with an agent in a browser, and what stands behind them.",
    ),
    ("webhook_endpoints", "Your receivers of signed events."),
    ("events", "What happened, kept so that you can read it again."),
    ("event_types", "The catalogue of events."),
    ("concurrency", "How many calls run at once."),
    ("me", "The key you are using."),
    ("_sandbox", "What the outside does, simulated with a test key."),
    ("answers", "What people answered to the questions of agents."),
    (
        "compliance",
        "What the law asks of calls and messages, and the record that proves each attempt.",
    ),
    ("consents", "Who agreed to be called or written to, and what proves it."),
    ("contacts", "People in campaigns, found wherever they are."),
    ("credits", "What is left to spend, every movement of it, and top-ups."),
    ("dnc", "Whom nobody may call or write to."),
    ("people", "All that is kept about one person: told, and erased."),
    ("email_messages", "E-mails to people."),
    (
        "functions",
        "What agents may call: your server, and tools of MCP servers.",
    ),
    ("imports", "Lists that are read in from files."),
    ("numbers", "Numbers that calls come from, and that agents answer."),
    ("questions", "What agents ask."),
    ("recordings", "What was said, as sound."),
    (
        "registers",
        "Lists of numbers that must not be called, such as the national ones.",
    ),
    ("sip_trunks", "The ways to carriers and PBXs."),
    ("sms_messages", "SMS to people, and from them."),
    ("verified_numbers", "Numbers that test keys may call."),
    ("voices", "Built-in voices, and clones."),
    ("mcp", "For assistants: the Model Context Protocol over HTTP."),
    (
        "dashboard",
        "What the dashboard calls, in the browser that signed in. It changes as the dashboard does.",
    ),
    ("system", "For whoever operates the server."),
];
